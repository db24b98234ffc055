"""Files made by hand, independent of the library's own writer: sound ones of every version, and forged ones."""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import struct
from pathlib import Path
from typing import Any

import pytest

from prodige import Graph
from prodige.graph import container
from prodige.graph.container import FileFormatError

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**23}]


def assemble(header: Any, body: bytes = b"", version: int = 3, magic: bytes = b"\x89PRODIGE") -> bytes:
    """Return a file with a correct checksum, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = magic + struct.pack("<II", version, len(text)) + text + body
    return data + hashlib.sha256(data).digest()


def entry(name: str, dtype: str, shape: list[int], length: int, codec: str = "raw") -> dict[str, Any]:
    """Return what a header says of an array."""
    return {"name": name, "dtype": dtype, "shape": shape, "codec": codec, "length": length}


def parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body: edges 0-1, 0-2 and 1-2."""
    arrays = [entry("i", "int32", [3], 12), entry("j", "int32", [3], 12), entry("weight", "float32", [3], 12)]
    content = {"n_vertices": 3, "n_items": 3, "n_edges": 3}
    header = {"kind": "graph", "content": content, "arrays": arrays, "metadata": {}}
    return header, struct.pack("<6i3f", 0, 0, 1, 1, 2, 2, 1, 2, 3)


def packed_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of packed edges: 0-1, 0-2 and 1-2 of weights 1, 2 and 4."""
    arrays = [entry(name, "uint8", [1], 1) for name in ("degree", "j", "weight")]
    packing = {"j_bits": 1, "j_least": 1, "weight_bits": 2, "least": 1.0, "greatest": 4.0}
    content = {"n_vertices": 3, "n_items": 3, "n_edges": 3, **packing}
    header = {"kind": "graph", "content": content, "arrays": arrays, "metadata": {}}
    return header, bytes([0b001011, 0b110, 0b110100])


def old_sections(n_edges: int) -> list[dict[str, Any]]:
    """Return the sections of a file of version 1."""
    n = 4 * n_edges
    return [
        {"name": "i", "dtype": "int32", "offset": 0, "length": n},
        {"name": "j", "dtype": "int32", "offset": n, "length": n},
        {"name": "weight", "dtype": "float32", "offset": 2 * n, "length": n},
    ]


def old_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of version 1: edges 0-1, 0-2 and 1-2."""
    header = {"n_vertices": 3, "n_items": 3, "n_edges": 3, "sections": old_sections(3), "metadata": {}}
    return header, struct.pack("<6i3f", 0, 0, 1, 1, 2, 2, 1, 2, 3)


def old_packed_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of version 2: edges 0-1, 0-2 and 1-2 of weights 1, 2 and 4."""
    sections = [
        {"name": "degree", "bits": 1, "offset": 0, "length": 1},
        {"name": "j", "bits": 1, "least": 1, "offset": 1, "length": 1},
        {"name": "weight", "bits": 2, "least": 1.0, "greatest": 4.0, "offset": 2, "length": 1},
    ]
    header = {"n_vertices": 3, "n_items": 3, "n_edges": 3, "sections": sections, "metadata": {}}
    return header, bytes([0b001011, 0b110, 0b110100])


def write_old(path: Path, graph: Graph, metadata: dict[str, Any]) -> None:
    """Write a graph as version 1 did, in which recommenders were graphs with metadata of their own."""
    header = {"n_vertices": graph.n_vertices, "n_items": graph.n_items, "n_edges": graph.n_edges}
    body = b"".join(column.tobytes() for column in graph.edges)
    text = {**header, "sections": old_sections(graph.n_edges), "metadata": metadata}
    path.write_bytes(assemble(text, body, version=1))


def compressed(content: bytes) -> bytes:
    """Return bytes as a raw LZMA2 stream."""
    return lzma.compress(content, lzma.FORMAT_RAW, filters=FILTERS)


def compressed_at_the_limit(content: bytes) -> bytes:
    """Return bytes as a stream that is not much shorter than a reader takes: short pieces, each by itself."""
    pieces = (content[begin : begin + 768] for begin in range(0, len(content), 768))
    return b"".join(compressed_once(piece)[:-1] for piece in pieces) + b"\0"


compressed_once = functools.lru_cache(4)(compressed)


def forged(kind: str, content: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Return a file that unpacks to as much as a reader lets it."""
    rows, body = [], b""
    for name, array in arrays.items():
        data = array.tobytes()
        stream = compressed(data) if len(data) <= 64 * len(compressed(data)) else compressed_at_the_limit(data)
        rows.append(entry(name, array.dtype.name, list(array.shape), len(stream), "lzma"))
        body += stream
    return assemble({"kind": kind, "content": content, "arrays": rows, "metadata": {}}, body)


def refused(path: Path, data: bytes, match: str | None = None) -> str:
    """Loading refuses the file, with a message of one line that names it."""
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=match) as caught:
        Graph.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def is_refused(path: Path, data: bytes) -> bool:
    """Whether both readers refuse the file; quicker than ``pytest.raises`` where there are thousands."""
    path.write_bytes(data)
    n_refusals = 0
    for reader in (Graph.load, container.describe):
        try:
            reader(path)
        except FileFormatError:
            n_refusals += 1
    return n_refusals == 2
