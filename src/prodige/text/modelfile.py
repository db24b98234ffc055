r"""Models on disk: named arrays and a description in one compressed file, in which nothing is trusted.

Layout, all numbers little-endian:

=======  ======  ===================================================================================================
offset   bytes
=======  ======  ===================================================================================================
0        8       magic, ``\x89PRODIGM``
8        4       format version, uint32
12       4       H, the length of the table, uint32; at most 2**16
16       H       table: a JSON list in ASCII of ``[name, type, shape, length]``, the description first
16 + H   ...     the entries in this order, each of its length and compressed with LZMA
...      32      SHA-256 of everything before it
=======  ======  ===================================================================================================

The description is an entry without a name, of bytes of JSON. The checksum finds accidents; it is no signature. So a
reader names the entries it expects, with their types and numbers of dimensions, and takes no others; it compares all
sizes with each other and with that of the file before memory is set aside. No entry is ever run or unpickled.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.graph import fileformat
from prodige.graph.fileformat import FileFormatError, StrPath, as_text, open_regular, replacing

# Type and number of dimensions of each array.
Kinds = Mapping[str, tuple[str, int]]

MAGIC = b"\x89PRODIGM"
VERSION = 2
START = struct.Struct("<8sII")  # magic, version, length of the table
DIGEST_BYTES = hashlib.sha256().digest_size

# The most bytes of a description: labels of some 100,000 classes. Parsed JSON takes up to thirty times as much.
MAX_DESCRIPTION = 2**22
_MOST_TABLE = 2**16
_MOST_FILE = 2**31
# All entries unpack to no more than this, and so many bytes for each of the file. Four for one is usual.
_ROOM = 2**26
_RATIO = 64

# The first version was a zip archive.
_ZIP = b"PK\x03\x04"
# Not from the file, which could ask for a dictionary of any size.
_FILTERS = [{"id": lzma.FILTER_LZMA1, "preset": 6, "dict_size": 2**23}]
_DAMAGED = "it is damaged or no model of prodige; check that this is the right file, restore a copy, or save it again"


def pack(description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a model as the bytes of a file; equal models have equal ones.

    Parameters
    ----------
    description : mapping
        Anything JSON can hold.
    arrays : mapping of str to ndarray
        Numbers, not objects.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.modelfile import pack, unpack
    >>> data = pack({"kind": "example"}, {"weights": np.arange(3, dtype="i4")})
    >>> description, arrays = unpack(data, {"weights": ("i4", 1)})
    >>> description, arrays["weights"]
    ({'kind': 'example'}, array([0, 1, 2], dtype=int32))
    """
    table, entries = [], []
    for name, values in {"": as_bytes(description), **arrays}.items():
        if values.dtype.kind not in "biuf":
            raise TypeError(f"array {name!r} must have numbers, got {values.dtype}")
        kind = values.dtype.newbyteorder("<")
        entries.append(lzma.compress(values.astype(kind, order="C").tobytes(), lzma.FORMAT_RAW, filters=_FILTERS))
        table.append([name, kind.str[1:], list(values.shape), len(entries[-1])])
    head = json.dumps(table, separators=(",", ":")).encode()
    data = START.pack(MAGIC, VERSION, len(head)) + head + b"".join(entries)
    return data + hashlib.sha256(data).digest()


def as_bytes(description: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return a description as it is stored, after making sure that it can be read again.

    Examples
    --------
    >>> from prodige.text.modelfile import as_bytes
    >>> as_bytes({"a": 1}).tobytes()
    b'{"a":1}'
    """
    text = json.dumps(description, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_DESCRIPTION:
        raise ValueError(
            f"labels and parameters take {len(text)} bytes, a file has room for {MAX_DESCRIPTION}; give shorter labels"
        )
    return np.frombuffer(text, np.uint8)


def unpack(data: bytes, kinds: Kinds, name: str = "the model") -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a model.

    Parameters
    ----------
    data : bytes
    kinds : mapping of str to (str, int)
        Type and number of dimensions of each array there is to be.
    name : str
        What messages call it.

    Raises
    ------
    prodige.graph.fileformat.FileFormatError
        If the bytes are not those of such a model.
    """
    check_start(data[: START.size], name)
    if hashlib.sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
        raise FileFormatError(f"{name}: its checksum does not fit; {_DAMAGED}")
    try:
        length = START.unpack_from(data)[2]
        if length > _MOST_TABLE:
            raise ValueError(f"its table takes {length} bytes")
        rest = memoryview(data)[START.size + length : -DIGEST_BYTES]
        places = read_table(data[START.size : START.size + length], kinds, len(rest), len(data))
        parts: dict[str, NDArray[Any]] = {}
        for key, kind, shape, start, end in places:
            size = math.prod(shape) * kind.itemsize
            parts[key] = np.frombuffer(decompress(rest[start:end], size), kind).reshape(shape)
        description = json.loads(parts.pop("").tobytes(), parse_constant=no_constant)
        if not isinstance(description, dict):
            raise ValueError("the description is no object")
    except (ValueError, TypeError, LookupError, RecursionError, lzma.LZMAError) as error:
        raise FileFormatError(f"{name}: {error}; {_DAMAGED}") from error
    return description, parts


def write(path: StrPath, data: bytes) -> None:
    """Write a model; a file that is there is replaced in one step, or stays as it was."""
    with replacing(as_text(path)) as file:
        file.write(data)


def read(path: StrPath) -> bytes:
    """Return the bytes of a file that starts as a model does."""
    name = as_text(path)
    with open_regular(name) as file:
        check_start(file.peek(START.size)[: START.size], name)
        if os.fstat(file.fileno()).st_size > _MOST_FILE:
            raise FileFormatError(f"{name}: it is larger than {_MOST_FILE} bytes, the most a model can have")
        return file.read()


def is_model(path: StrPath) -> bool:
    """Whether a file is a model, by its first bytes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from prodige.text.modelfile import is_model, pack, write
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "model.prodige")
    ...     write(path, pack({}, {}))
    ...     is_model(path)
    True
    """
    try:
        with open_regular(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileFormatError:
        return False


# -- reading ---------------------------------------------------------------------------------------------------------


def check_start(start: bytes, name: str) -> None:
    """Refuse what is clearly no model of this version."""
    if start.startswith(_ZIP):
        raise FileFormatError(
            f"{name}: models in zip archives, as earlier versions saved them, are no longer read; fit and save it again"
        )
    if start.startswith(fileformat.MAGIC):
        raise FileFormatError(f"{name}: it holds a graph, not a text model; read it with Graph.load")
    if len(start) < START.size or not start.startswith(MAGIC):
        raise FileFormatError(f"{name}: {_DAMAGED}")
    version = START.unpack(start)[1]
    if version != VERSION:
        raise FileFormatError(
            f"{name}: it has version {version} of the format, this prodige reads {VERSION}; use the one that saved it"
        )


def read_table(
    text: bytes, kinds: Kinds, n_bytes: int, n_file: int
) -> list[tuple[str, np.dtype[Any], tuple[int, ...], int, int]]:
    """Return name, type, shape, start and end of each entry, all of which take ``n_bytes`` of a file of ``n_file``."""
    expected = {"": ("u1", 1), **kinds}
    table = json.loads(text)
    if not isinstance(table, list) or sorted(row[0] for row in table) != sorted(expected) or table[0][0] != "":
        raise ValueError(f"its entries should be a description and {', '.join(kinds) or 'nothing else'}")
    places = []
    end = total = 0
    for name, kind, shape, length in table:
        if [kind, len(shape)] != list(expected[name]):
            raise ValueError(f"{name!r} should have {expected[name][1]} dimensions of {expected[name][0]}")
        if not all(type(size) is int and 0 <= size <= _MOST_FILE for size in (*shape, length)):
            raise ValueError(f"{name!r} has an impossible size")
        start, end = end, end + length
        total += math.prod(shape) * np.dtype(kind).itemsize
        places.append((name, np.dtype(kind).newbyteorder("<"), tuple(shape), start, end))
    if end != n_bytes:
        raise ValueError(f"its entries take {end} bytes, there are {n_bytes}")
    if total > _ROOM + _RATIO * n_file or math.prod(places[0][2]) > MAX_DESCRIPTION:
        raise ValueError(f"it says that it unpacks to {total} bytes, more than a file of {n_file} bytes should")
    return places


def decompress(packed: memoryview, size: int) -> bytes:
    """Return the bytes of an entry, refusing one that has more or fewer than it says."""
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    content = decompressor.decompress(packed, size)
    if len(content) == size and not decompressor.eof:  # the mark at the end gives no bytes
        content += decompressor.decompress(b"", 1)
    if len(content) != size or not decompressor.eof or decompressor.unused_data:
        raise ValueError(f"an entry should have {size} bytes, which it has not")
    return content


def no_constant(name: str) -> None:
    """Refuse what JSON does not know."""
    raise ValueError(f"{name} is no number of JSON")
