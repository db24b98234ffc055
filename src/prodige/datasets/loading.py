"""Which data sets there are, and what each looks like once it is loaded.

A new one is a line in the table of recipes: its file, how to read it and, where it is public, how to make it from the
original.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.datasets import glove, mnist
from prodige.datasets.storage import Field, locate, read_arrays
from prodige.space import unit_rows


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
        raise ValueError(f"name must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    recipe = RECIPES[name]
    return recipe.read(name, locate(recipe.file, data_dir, recipe.advice, recipe.make))
