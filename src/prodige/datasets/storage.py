"""Where data files live, and how they are read and written.

Files are ``.npz`` without pickles, so that opening one runs no code. They are written beside their place and moved
there at the end: a file that exists is complete.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.graph.atomic import replacing

VARIABLE = "PRODIGE_DATA"


@dataclass(frozen=True)
class Field:
    """What an array in a file must look like: kinds of NumPy's ``dtype.kind``, and a shape; -1 is any length."""

    kinds: str
    shape: tuple[int, ...]

    def fits(self, array: NDArray[Any]) -> bool:
        """Whether an array looks like that."""
        lengths = zip(array.shape, self.shape, strict=False)
        return (
            array.dtype.kind in self.kinds
            and array.ndim == len(self.shape)
            and all(length == target or target < 0 for length, target in lengths)
        )


def locate(
    file: str,
    data_dir: str | os.PathLike[str] | None,
    advice: str,
    make: Callable[[Path, Path | None], None] | None = None,
) -> Path:
    """Return the path of a data file: in the user's folder, in the cache, or made there now."""
    folder = user_folder(data_dir)
    if folder is not None and (folder / file).exists():
        return folder / file
    path = cache_folder() / file
    if path.exists():
        return path
    if make is None:
        looked = f"{folder} or {path.parent}" if folder else str(path.parent)
        raise FileNotFoundError(
            f"{file} is not in {looked}; {advice}, then name its folder with data_dir=... or {VARIABLE}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path, folder)
    return path


def user_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder the user named, if any, after making sure it exists."""
    origin = "data_dir" if data_dir is not None else VARIABLE
    named = data_dir if data_dir is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise NotADirectoryError(f"{origin} must name an existing folder, got {str(named)!r}")
    return folder


def cache_folder() -> Path:
    """Return where downloads are kept, as the system has it; ``XDG_CACHE_HOME`` counts everywhere."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "prodige"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "prodige"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "prodige"
    return Path.home() / ".cache" / "prodige"


def read_arrays(path: Path, **fields: Field) -> dict[str, NDArray[Any]]:
    """Read named arrays after making sure they are what they must be.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from prodige.datasets.storage import Field, read_arrays, write_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder) / "toy.npz", X=np.zeros((2, 3)))
    ...     read_arrays(Path(folder) / "toy.npz", X=Field("f", (2, 3)))["X"].shape
    (2, 3)
    """
    arrays = {}
    try:
        with open(path, "rb") as source:  # opened here: NumPy leaves a damaged file open
            file = np.load(source, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            present = list(file.files)
            for name in fields.keys() & set(present):
                arrays[name] = file[name]
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read as a .npz file of plain arrays ({error}); get or make it anew"
        ) from error
    for name, field in fields.items():
        if name not in arrays:
            raise ValueError(f"{path} must have the fields {', '.join(fields)}; it has {', '.join(present) or 'none'}")
        array = arrays[name]
        if not field.fits(array):
            raise ValueError(
                f"{name} of {path} must have shape {field.shape} and a dtype of kind {' or '.join(field.kinds)}, "
                f"got shape {array.shape} and {array.dtype}"
            )
    return arrays


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write named arrays to a ``.npz`` file that is either complete or not there."""
    with replacing(str(path)) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
