"""Pinterest: who pinned which image, with one image of each user held out, as "Neural Collaborative Filtering" has it.

He et al. (WWW 2017) publish three plain files. Two are needed, as the held-out items are named again with their
negatives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original, fetch
from prodige.datasets.storage import VARIABLE, Field, read_arrays, write_arrays

_PLACE = "https://raw.githubusercontent.com/hexiangnan/neural_collaborative_filtering/master/Data/"

TRAIN = Original("pinterest-20.train.rating", (_PLACE + "pinterest-20.train.rating",))
TEST = Original("pinterest-20.test.negative", (_PLACE + "pinterest-20.test.negative",))

ADVICE = (
    f"put {TRAIN.file} and {TEST.file}, or pinterest.npz, into a folder and name it with data_dir=... or {VARIABLE}"
)


def make(path: Path, folder: Path | None) -> None:
    """Write ``pinterest.npz`` from the two original files."""
    users, items, test_items, negatives = read_originals(path, folder, (TRAIN, TEST), ADVICE)
    n_items = 1 + max(int(part.max()) for part in (items, test_items, negatives))
    # A pair that occurs more than once is kept with its count.
    pairs, counts = np.unique(users * n_items + items, return_counts=True)
    write_arrays(
        path,
        train_user=pairs // n_items,
        train_item=pairs % n_items,
        train_count=counts,
        test_item=test_items,
        # The name of the field in files whose negatives were drawn anew; these are the published ones.
        test_neg_resampled=negatives,
        n_users=np.array(test_items.size),
        n_items=np.array(n_items),
    )


def read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``pinterest.npz``."""
    return read_arrays(
        path,
        **{field: Field("iu", (-1,)) for field in ("train_user", "train_item", "train_count", "test_item")},
        test_neg_resampled=Field("iu", (-1, -1)),
        n_users=Field("iu", ()),
        n_items=Field("iu", ()),
    )


def read_originals(
    path: Path, folder: Path | None, originals: tuple[Original, Original], advice: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return users and items of all pairs, and held-out item and negatives of each user, from files of this kind."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as temporary:
        train, test = (fetch(original, Path(temporary), folder, advice) for original in originals)
        try:
            with open(train, encoding="ascii") as lines:
                users, items = parse_train(lines)
            with open(test, encoding="ascii") as lines:
                test_users, test_items, negatives = parse_test(lines)
            if not np.array_equal(test_users, np.arange(test_users.size)) or users.max() >= test_users.size:
                raise ValueError(f"{test.name} must have a line for every user of {train.name}, in order")
        except ValueError as error:  # text in another encoding among them
            raise ValueError(f"{train.name} and {test.name} are not the published files: {error}; {advice}") from error
    return users, items, test_items, negatives


def parse_train(lines: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    r"""Read lines of user, item, rating and time, with tabs between them; return users and items.

    Examples
    --------
    >>> from prodige.datasets.pinterest import parse_train
    >>> parse_train(["0\t12\t1\t0\n", "1\t5\t1\t0\n"])
    (array([0, 1]), array([12,  5]))
    """
    table = integers([line.split("\t")[:2] for line in lines], 2)
    return table[:, 0].copy(), table[:, 1].copy()


def parse_test(lines: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    r"""Read lines of (user,item) and negatives, with tabs between them; return users, items and negatives.

    Examples
    --------
    >>> from prodige.datasets.pinterest import parse_test
    >>> parse_test(["(0,12)\t3\t4\n"])
    (array([0]), array([12]), array([[3, 4]]))
    """
    rows = []
    for line in lines:
        pair, *negatives = line.split("\t")
        rows.append([*pair.removeprefix("(").removesuffix(")").split(","), *negatives])
    table = integers(rows, 3)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2:].copy()


def integers(rows: list[list[Any]], least: int) -> NDArray[np.int64]:
    """Return a table of ids, 0 or more, with at least so many columns."""
    if not rows or len(rows[0]) < least:
        raise ValueError(f"a line must have {least} numbers or more, got {rows[0] if rows else 'no line'}")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(f"line {number} has {len(row)} numbers, the first has {len(rows[0])}")
    table = np.array(rows).astype(np.int64)
    if table.min() < 0:
        raise ValueError(f"ids must be 0 or more, got {table.min()}")
    return table
