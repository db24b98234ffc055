"""The header of a ``.prodige`` file: one JSON object, checked as if it came from an attacker."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from prodige._validation import MAX_EDGES, MAX_INT32, find_isolated

MAX_HEADER = 2**24  # bytes; parsed JSON takes up to thirty times as much
MAX_NESTING = 64  # levels; far from where the JSON parser gives up, which depends on its caller's stack

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)
CODECS = ("raw", "lzma")
MAX_RATIO = 64  # bytes that one of an lzma stream may unpack to
MAX_SHAPE = 2**60  # bytes of an array, where dimensions of 0 count as 1
MAX_DIMENSIONS = 4
MAX_NAME = 64


# What a deflated header may refer back to. It is a part of the format and can never change; what is most frequent
# comes last.
_DICTIONARY = (
    b'"n_first":1000,"numbers_per_item":null,"bits_per_item":64.0,"metric":"euclidean","kind":"recommender","kind":'
    b'"compressor","content":{"graph":{"metadata":{"metric":"euclidean"}}"dtype":"float32","dtype":"int32","name":'
    b'"places","dtype":"uint8","shape":[],"codec":"lzma","length":[2,2],1,0],[[16,15,14,13,12,11,10,9,8,7],1,0],[[8,7,7,'
    b'7,6,6,5],1,6],[[4,3,3,4],1,5]],"n_kinds":128}{"kind":"product","content":{"n_items":10000,"n_vertices":10000,'
    b'"power":2.0,"gauge":{"name":"power","exponent":2.0},"length_bits":5,"factors":[[[],1,0],[[],1,6],[[],1,5]],'
    b'"n_kinds":16},"arrays":[{"name":"codes","dtype":"uint8","shape":[],"codec":"raw","length":}],"metadata":{}}'
)


class HeaderError(ValueError):
    """What is wrong with a header, as the end of a sentence about it."""


class Entry(NamedTuple):
    """An array in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    codec: str
    length: int

    @property
    def n_bytes(self) -> int:
        """Bytes that it takes in memory."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def as_json(self) -> dict[str, Any]:
        """Return what the header says of it."""
        return {**self._asdict(), "shape": list(self.shape)}


class Header(NamedTuple):
    """What a file says of itself."""

    kind: str
    content: dict[str, Any]
    entries: list[Entry]
    metadata: dict[str, Any]


def encode(header: Header) -> bytes:
    """Return a header as it is written."""
    fields = {
        "kind": header.kind,
        "content": header.content,
        "arrays": [entry.as_json() for entry in header.entries],
        "metadata": header.metadata,
    }
    data = json.dumps(fields, allow_nan=False, separators=(",", ":")).encode()
    data += b" " * (-len(data) % 8)
    if len(data) > MAX_HEADER:
        raise ValueError(
            f"metadata makes a header of {len(data)} bytes, at most {MAX_HEADER} are possible; "
            "keep what is large in a file of its own"
        )
    return data


def deflate(text: bytes) -> bytes:
    """Return a header in few bytes.

    Examples
    --------
    >>> from prodige.graph.header import deflate, inflate
    >>> text = b'{"kind":"product","content":{},"arrays":[],"metadata":{}}'
    >>> len(deflate(text)) < len(text) / 2, inflate(deflate(text)) == text
    (True, True)
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_DICTIONARY)
    return packer.compress(text.rstrip(b" ")) + packer.flush()


def inflate(data: bytes) -> bytes:
    """Return a header that was deflated."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_DICTIONARY)
    try:
        text = unpacker.decompress(data, MAX_HEADER)
    except zlib.error as error:
        raise HeaderError(f"cannot be inflated ({error})") from None
    if not unpacker.eof or unpacker.unused_data:
        raise HeaderError(f"does not end where it should, or inflates to more than {MAX_HEADER} bytes")
    return text


def decode(text: bytes) -> Header:
    """Return what a header of version 3 or later says."""
    fields = parse(text, ("arrays", "content", "kind", "metadata"))
    if not isinstance(fields["kind"], str):
        raise HeaderError(f"has a kind that is no text, {shortened(fields['kind'])}")
    if not isinstance(fields["arrays"], list):
        raise HeaderError("has arrays that are not a JSON list")
    for key in ("content", "metadata"):
        if not isinstance(fields[key], dict):
            raise HeaderError(f"has {key} that is not a JSON object")
    entries = [decode_entry(row) for row in fields["arrays"]]
    if len({entry.name for entry in entries}) < len(entries):
        raise HeaderError("has arrays of the same name")
    return Header(fields["kind"], fields["content"], entries, fields["metadata"])


def decode_entry(row: Any) -> Entry:
    """Return what a header says of an array, if it is possible."""
    if not isinstance(row, dict) or sorted(row) != sorted(Entry._fields):
        raise HeaderError(f"has an array without or beside {', '.join(Entry._fields)}: {shortened(row)}")
    name, dtype, shape, codec, length = (row[key] for key in Entry._fields)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise HeaderError(f"has an array whose name is {shortened(name)}")
    if dtype not in DTYPES or codec not in CODECS:
        raise HeaderError(
            f"has an array {name!r} of dtype {shortened(dtype)} and codec {shortened(codec)}, which are not known"
        )
    if (
        not isinstance(shape, list)
        or len(shape) > MAX_DIMENSIONS
        or not all(is_size(size) for size in [*shape, length])
    ):
        raise HeaderError(f"has an array {name!r} of shape {shortened(shape)} in {shortened(length)} bytes")
    entry = Entry(name, dtype, tuple(shape), codec, length)
    if math.prod(max(size, 1) for size in shape) * np.dtype(dtype).itemsize > MAX_SHAPE:
        raise HeaderError(f"has an array {name!r} of shape {shortened(shape)}, which is too large")
    if entry.n_bytes > MAX_RATIO * length or (codec == "raw" and entry.n_bytes != length):
        raise HeaderError(f"has an array {name!r} of {entry.n_bytes} bytes in {length}")
    return entry


def is_size(value: Any) -> bool:
    """Whether a value can be a size of an array."""
    return type(value) is int and 0 <= value <= MAX_SHAPE  # True is an int, too


def parse(text: bytes, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return a header, a JSON object in ASCII with these keys and no others."""
    try:
        header = json.loads(text.decode("ascii"), object_pairs_hook=unique_keys, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HeaderError(f"is not JSON as it should be ({reason})") from None
    if nesting(header) > MAX_NESTING:
        raise HeaderError(f"is nested more than {MAX_NESTING} levels deep")
    if not isinstance(header, dict) or sorted(header) != sorted(keys):
        raise HeaderError(f"is not a JSON object with the keys {', '.join(sorted(keys))}")
    return header


def check_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata as a file gives it back, which is as it was: what JSON would change is refused."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict, got {metadata!r} of type {type(metadata).__name__}")
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"metadata cannot be written as JSON: {error}; use str, int, finite float, bool, None, list and dict"
        ) from None
    if nesting(kept) >= MAX_NESTING:  # the header around it is a level of its own
        raise ValueError(f"metadata is nested {nesting(kept)} levels deep; at most {MAX_NESTING - 1} are possible")
    if kept != dict(metadata):
        raise ValueError(
            f"metadata would be read back as {shortened(kept)}, not as the {shortened(metadata)} it is; "
            "use strings for keys and lists for tuples"
        )
    return kept


def count(fields: Mapping[str, Any], key: str, least: int, most: int) -> int:
    """Return one of the header's numbers."""
    value = fields[key]
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise HeaderError(f"has {key} = {shortened(value)}, which is not a whole number from {least} to {most}")
    return value


def check_counts(content: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the numbers of vertices, items and edges that a file claims, if a graph can have them."""
    n_vertices = count(content, "n_vertices", 1, MAX_INT32 - 1)
    n_items = count(content, "n_items", 1, n_vertices)
    n_edges = count(content, "n_edges", 0, MAX_EDGES)
    if problem := find_isolated(n_vertices, n_edges):
        raise HeaderError(f"claims what no graph has: {problem}")
    return n_vertices, n_items, n_edges


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys differ: readers that keep the first and the last of two would disagree."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has the same key twice")
    return result


def no_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


def nesting(value: Any) -> int:
    """Return how deep lists and dicts lie inside each other. Not recursive: the value may come from an attacker."""
    depth, level = 0, [value]
    while containers := [entry for entry in level if isinstance(entry, (dict, list))]:
        depth += 1
        level = [child for entry in containers for child in (entry.values() if isinstance(entry, dict) else entry)]
    return depth


def as_json(value: Any) -> Any:
    """Return a number as JSON knows it, be it one of Python or of NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.header import as_json
    >>> as_json(np.float64(4)), as_json("auto")
    (4.0, 'auto')
    """
    return value.item() if isinstance(value, np.generic) else value


def shortened(value: Any) -> str:
    """Return a value for a message of one line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
