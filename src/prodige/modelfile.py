"""Models on disk: named arrays and a description in one compressed file, in which nothing is trusted.

The file is a zip archive of ``model.json`` and one ``.npy`` file for each array, compressed with LZMA; any tool opens
it. No entry is ever run or unpickled, and sizes are looked at before memory is set aside.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.fileformat import FileFormatError, StrPath, as_text, replacing

DESCRIPTION = "model.json"
# Bytes of all entries once unpacked.
_MOST = 2**31
# The same bytes for the same model: the archive knows no other time.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a model as the bytes of a file.

    Parameters
    ----------
    description : mapping
        Anything JSON can hold.
    arrays : mapping of str to ndarray
        Numbers, not objects.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.modelfile import pack, unpack
    >>> description, arrays = unpack(pack({"kind": "example"}, {"weights": np.arange(3)}))
    >>> description, arrays["weights"]
    ({'kind': 'example'}, array([0, 1, 2]))
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(entry(DESCRIPTION), json.dumps(description, sort_keys=True, allow_nan=False))
        for name, values in arrays.items():
            column = io.BytesIO()
            np.lib.format.write_array(column, np.ascontiguousarray(values), allow_pickle=False)
            archive.writestr(entry(f"{name}.npy"), column.getvalue())
    return buffer.getvalue()


def unpack(data: bytes, name: str = "the model") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a model.

    Raises
    ------
    prodige.fileformat.FileFormatError
        If the bytes are not those of a model.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            total = sum(item.file_size for item in archive.infolist())
            if total > _MOST:
                raise FileFormatError(f"{name}: it says that it unpacks to {total} bytes, more than a model can have")
            parts = {item.filename: read_entry(archive, item) for item in archive.infolist()}
        description = json.loads(parts.pop(DESCRIPTION))
        if not isinstance(description, dict):
            raise ValueError("the description is no object")
        arrays = {part.removesuffix(".npy"): read_array(part, content) for part, content in parts.items()}
    except FileFormatError:
        raise
    # What zipfile, lzma, json and NumPy raise on damaged input is not one kind of error.
    except Exception as error:
        raise FileFormatError(
            f"{name}: it is damaged or no model of prodige ({type(error).__name__}: {error}); "
            "check that this is the right file, restore a copy, or save the model again"
        ) from error
    return description, arrays


def write(path: StrPath, data: bytes) -> None:
    """Write a model; a file that is there is replaced in one step, or stays as it was."""
    with replacing(as_text(path)) as file:
        file.write(data)


def read(path: StrPath) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write` wrote."""
    name = as_text(path)
    with open(name, "rb") as file:
        return unpack(file.read(), name)


def entry(name: str) -> zipfile.ZipInfo:
    """Return the head of an entry."""
    head = zipfile.ZipInfo(name, _TIME)
    head.compress_type = zipfile.ZIP_LZMA
    return head


def read_array(name: str, content: bytes) -> NDArray[Any]:
    """Return an array whose header and content agree on its size; NumPy alone would make room for what is said."""
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"{name} has another version of the format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != len(content) - stream.tell():
        raise ValueError(f"{name} has {len(content) - stream.tell()} bytes for shape {shape} of {dtype}, {size} bytes")
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def read_entry(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    """Return an entry, never more bytes than it says it has."""
    with archive.open(item) as stream:
        content = stream.read(item.file_size + 1)
    if len(content) != item.file_size:
        raise ValueError(f"{item.filename} has another length than it says")
    return content
