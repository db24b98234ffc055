"""Last.fm: who listened to which artist, with one artist of each user held out, as "DeepCF" has it.

Deng et al. (AAAI 2019) publish plain files of the same form as those of :mod:`prodige.datasets.pinterest`. It is small:
a set to try things on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original
from prodige.datasets.pinterest import read_originals
from prodige.datasets.storage import VARIABLE, Field, read_arrays, write_arrays

_PLACE = "https://raw.githubusercontent.com/familyld/DeepCF/master/Data/"

TRAIN = Original("lastfm.train.rating", (_PLACE + "lastfm.train.rating",))
TEST = Original("lastfm.test.negative", (_PLACE + "lastfm.test.negative",))

ADVICE = f"put {TRAIN.file} and {TEST.file}, or lastfm.npz, into a folder and name it with data_dir=... or {VARIABLE}"


def make(path: Path, folder: Path | None) -> None:
    """Write ``lastfm.npz`` from the two original files."""
    users, items, test_items, negatives = read_originals(path, folder, (TRAIN, TEST), ADVICE)
    write_arrays(
        path,
        train=np.stack([users, items], axis=1),
        test=np.stack([np.arange(test_items.size), test_items], axis=1),
        negatives=negatives,
    )


def read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``lastfm.npz`` by the names that those of Pinterest have."""
    arrays = read_arrays(path, train=Field("iu", (-1, 2)), test=Field("iu", (-1, 2)), negatives=Field("iu", (-1, -1)))
    train, test, negatives = (arrays[name].astype(np.int64) for name in ("train", "test", "negatives"))
    if not np.array_equal(test[:, 0], np.arange(len(test))):
        raise ValueError(f"test of {path} must have one pair of each user, in order")
    return {
        "train_user": train[:, 0],
        "train_item": train[:, 1],
        "train_count": np.ones(len(train), np.int64),
        "test_item": test[:, 1],
        "test_neg_resampled": without(negatives, test[:, 1]),
        "n_users": np.array(len(test)),
        "n_items": np.array(1 + max(int(part.max(initial=0)) for part in (train[:, 1], test[:, 1], negatives))),
    }


def without(negatives: NDArray[np.int64], held_out: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return negatives without the held-out items that some rows of the file have among them.

    Another negative of the same user counts twice instead, so that all users have equally many.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.datasets.lastfm import without
    >>> without(np.array([[4, 7, 5], [1, 2, 3]]), np.array([7, 9]))
    array([[4, 4, 5],
           [1, 2, 3]])
    """
    return np.where(negatives == held_out[:, None], np.roll(negatives, 1, axis=1), negatives)
