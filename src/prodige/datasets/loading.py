"""Which data sets there are, and what each looks like once it is loaded.

A new one is a line in the table of recipes: its file, how to read it and, where it is public, how to make it from the
original.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige.datasets import glove, imdb, lastfm, mnist, mr, pinterest
from prodige.datasets.storage import Field, locate, read_arrays
from prodige.metric.space import unit_rows
from prodige.recommendation.interactions import check_interactions


@dataclass(frozen=True)
class Dataset:
    """Rows and what they are.

    Attributes
    ----------
    name : str
        As in :data:`NAMES`.
    X : ndarray of float32, shape [N, D]
        Rows of length 1, as in the paper.
    labels : ndarray, shape [N]
        Digits of ``mnist10k``, words of ``glove10k``, photographs of ``celeba10k``.
    path : Path
        The file they were read from.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets import Dataset
    >>> Dataset("toy", np.eye(3, dtype=np.float32), np.arange(3), Path("toy.npz"))
    Dataset('toy', 3 rows of 3 numbers)
    """

    name: str
    X: NDArray[np.float32]
    labels: NDArray[Any]
    path: Path

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.X.shape[0]} rows of {self.X.shape[1]} numbers)"


@dataclass(frozen=True)
class Recipe:
    """How to come by a data set.

    Attributes
    ----------
    file : str
        Name of the file.
    labels : str
        Name of the field beside ``X``.
    n_columns : int
        Numbers in a row; all sets have 10,000 rows.
    advice : str
        What to do if it is not there and cannot be made.
    make : callable, optional
        ``make(path, folder)`` writes the file from the originals, taken from the folder or downloaded.
    """

    file: str
    labels: str
    n_columns: int
    advice: str
    make: Callable[[Path, Path | None], None] | None = None

    def read(self, name: str, path: Path) -> Dataset:
        """Read the file and bring the rows to length 1."""
        arrays = read_arrays(path, X=Field("fiu", (10_000, self.n_columns)), **{self.labels: Field("fiuU", (10_000,))})
        return Dataset(name, unit_rows(arrays["X"].astype(np.float32)), arrays[self.labels], path)


RECIPES = {
    "mnist10k": Recipe("mnist10k.npz", "y", 784, mnist.ADVICE, mnist.make),
    "glove10k": Recipe("glove10k.npz", "words", 300, glove.ADVICE, glove.make),
    "celeba10k": Recipe(
        "celeba10k.npz",
        "image_id",
        128,
        "it may not be passed on: get the CelebA photographs from their authors and run "
        "'prodige encode-faces FOLDER --limit 10000 -o celeba10k.npz'",
    ),
}

NAMES = tuple(RECIPES)


@dataclass(frozen=True)
class Interactions:
    """Who interacted with what, and what to look for.

    Attributes
    ----------
    name : str
        As in :data:`INTERACTIONS`.
    train : scipy.sparse.csr_array of float32, shape [U, I]
        How often a user interacted with an item.
    held_out : ndarray of int64, shape [U]
        An item of each user that is not in ``train``.
    negatives : ndarray of int64, shape [U, n]
        Items that the user has not interacted with, to rank the held-out one among.
    path : Path
        The file they were read from.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.datasets import Interactions
    >>> Interactions("toy", csr_array(np.eye(2)), np.array([1, 0]), np.empty((2, 0), int), Path("toy.npz"))
    Interactions('toy', 2 users, 2 items, 2 pairs)
    """

    name: str
    train: csr_array
    held_out: NDArray[np.int64]
    negatives: NDArray[np.int64]
    path: Path

    def __repr__(self) -> str:
        n_users, n_items = self.train.shape
        return f"Interactions({self.name!r}, {n_users} users, {n_items} items, {self.train.nnz} pairs)"


# Modules that say how interactions are read, how they are made from the originals, and what to do without those.
_INTERACTIONS = {"pinterest": pinterest, "lastfm": lastfm}

INTERACTIONS = tuple(_INTERACTIONS)


@dataclass(frozen=True)
class LabelledTexts:
    """Texts with a class each, in a part to learn from and one to test on.

    Attributes
    ----------
    name : str
        As in :data:`TEXTS`.
    train, test : list of str
        The texts as published.
    train_labels, test_labels : ndarray of int64
        Of ``imdb`` and ``mr``: 1 where a review is in favour of the film, 0 where it is against it.
    path : Path
        Where they were read from.
    has_published_split : bool
        Whether the parts are those that all use; otherwise figures are means over several, see :meth:`split_again`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets import LabelledTexts
    >>> LabelledTexts("toy", ["good", "bad"], np.array([1, 0]), ["fine"], np.array([1]), Path("toy"))
    LabelledTexts('toy', 2 texts to train, 1 to test, 2 classes)
    """

    name: str
    train: list[str]
    train_labels: NDArray[np.int64]
    test: list[str]
    test_labels: NDArray[np.int64]
    path: Path
    has_published_split: bool = True

    def split_again(self, seed: int) -> LabelledTexts:
        """Return all texts in parts of the same sizes, drawn at random."""
        order = np.random.default_rng(seed).permutation(len(self.train) + len(self.test))
        texts, labels = [*self.train, *self.test], np.concatenate([self.train_labels, self.test_labels])[order]
        shuffled, n_train = [texts[place] for place in order], len(self.train)
        return replace(
            self,
            train=shuffled[:n_train],
            train_labels=labels[:n_train],
            test=shuffled[n_train:],
            test_labels=labels[n_train:],
        )

    def __repr__(self) -> str:
        n_classes = np.unique(self.train_labels).size
        return (
            f"LabelledTexts({self.name!r}, {len(self.train)} texts to train, {len(self.test)} to test, "
            f"{n_classes} classes)"
        )


TEXTS = ("imdb", "mr")


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set of the paper.

    Parameters
    ----------
    name : {"mnist10k", "glove10k", "celeba10k"}
        The MNIST test set; the 10,000 most frequent words of GloVe in 300 dimensions; encodings of 10,000 faces.
    data_dir : path, optional
        Folder to look in for ``<name>.npz``, or for the original files; that of the environment variable
        ``PRODIGE_DATA`` when left out. What is not there comes from the cache of earlier downloads, then from the
        original public source.

    Raises
    ------
    FileNotFoundError
        If the data are not there and cannot be downloaded; the message says which file to put where.

    Examples
    --------
    >>> from prodige.datasets import load
    >>> load("mnist10k")  # doctest: +SKIP
    Dataset('mnist10k', 10000 rows of 784 numbers)
    >>> load("mnist")
    Traceback (most recent call last):
        ...
    ValueError: name must be one of 'mnist10k', 'glove10k', 'celeba10k', got 'mnist'
    """
    if name not in RECIPES:
        remedy = "; use load_interactions" if name in INTERACTIONS else "; use load_texts" if name in TEXTS else ""
        raise ValueError(f"name must be one of {', '.join(map(repr, NAMES))}, got {name!r}{remedy}")
    recipe = RECIPES[name]
    return recipe.read(name, locate(recipe.file, data_dir, recipe.advice, recipe.make))


def load_interactions(name: str = "pinterest", data_dir: str | os.PathLike[str] | None = None) -> Interactions:
    """Load interactions of users and items.

    Parameters
    ----------
    name : {"pinterest", "lastfm"}
        Images that users of Pinterest pinned; artists that users of Last.fm listened to.
    data_dir : path, optional
        Folder to look in for ``<name>.npz``, or for the original files, as in :func:`load`.

    Raises
    ------
    FileNotFoundError
        If the data are not there and cannot be downloaded; the message says which file to put where.

    Examples
    --------
    >>> from prodige.datasets import load_interactions
    >>> load_interactions("pinterest")  # doctest: +SKIP
    Interactions('pinterest', 37501 users, 9836 items, 962653 pairs)
    """
    if name not in INTERACTIONS:
        raise ValueError(f"name must be one of {', '.join(map(repr, INTERACTIONS))}, got {name!r}")
    kind = _INTERACTIONS[name]
    path = locate(f"{name}.npz", data_dir, kind.ADVICE, kind.make)
    return check_arrays(name, path, kind.read(path))


def check_arrays(name: str, path: Path, arrays: dict[str, NDArray[Any]]) -> Interactions:
    """Return the interactions of a file, after making sure that all ids are those of its users and items."""
    ids = ("train_user", "train_item", "train_count", "test_item")
    n_users, n_items = int(arrays["n_users"]), int(arrays["n_items"])
    lengths = {arrays[field].size for field in ids[:3]}
    if len(lengths) > 1 or len(arrays["test_item"]) != n_users or len(arrays["test_neg_resampled"]) != n_users:
        shapes = ", ".join(f"{field} {array.shape}" for field, array in arrays.items())
        raise ValueError(f"the fields of {path} must be as long as there are pairs or users ({n_users}), got {shapes}")
    for field, n in (("train_user", n_users), *((field, n_items) for field in (ids[1], ids[3], "test_neg_resampled"))):
        array = arrays[field]
        if array.size and not 0 <= array.min() <= array.max() < n:
            raise ValueError(f"{field} of {path} must hold ids from 0 to {n - 1}, got {array.min()} to {array.max()}")
    pairs = tuple(arrays[field].astype(np.int64) for field in ids[:2])
    table = csr_array((arrays["train_count"].astype(np.float32), pairs), shape=(n_users, n_items))
    return Interactions(
        name,
        check_interactions(table, "train_count"),
        arrays["test_item"].astype(np.int64),
        arrays["test_neg_resampled"].astype(np.int64),
        path,
    )


def load_texts(name: str = "imdb", data_dir: str | os.PathLike[str] | None = None) -> LabelledTexts:
    """Load texts with their classes.

    Parameters
    ----------
    name : {"imdb", "mr"}
        Film reviews, for and against; or single sentences of such.
    data_dir : path, optional
        Folder to look in for ``imdb_train.jsonl.gz`` and ``imdb_test.jsonl.gz``, or ``mr.npz``, or for the original
        archives, as in :func:`load`.

    Raises
    ------
    FileNotFoundError
        If the data are not there and cannot be downloaded; the message says which file to put where.

    Examples
    --------
    >>> from prodige.datasets import load_texts
    >>> load_texts("imdb")  # doctest: +SKIP
    LabelledTexts('imdb', 25000 texts to train, 25000 to test, 2 classes)
    """
    if name not in TEXTS:
        raise ValueError(f"name must be one of {', '.join(map(repr, TEXTS))}, got {name!r}")
    if name == "mr":
        path = locate(mr.FILE, data_dir, mr.ADVICE, mr.make)
        return LabelledTexts(name, *mr.read_sentences(path), path, has_published_split=False)
    train, test = (locate(imdb.file_of(part), data_dir, imdb.ADVICE, imdb.make) for part in imdb.PARTS)
    return LabelledTexts(name, *imdb.read_reviews(train), *imdb.read_reviews(test), train.parent)
