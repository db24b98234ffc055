"""Files made by hand, independent of the library's own writer: sound ones of every version, and forged ones."""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import math
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from prodige import Graph
from prodige.graph import container
from prodige.graph.container import FileFormatError

HUGE = 2**62

# Numbers that a header may claim, and what is no number at all.
CLAIMS: list[Any] = [-1, 0, 1, 2, 3, 8, 2**22, 2**26, 2**31 - 2, 2**31, HUGE, 1.5, 1e308, True, None, "3", [], {}]

# Both ends and weights of three edges that no graph of three vertices has, and what is said of them.
NO_GRAPH: list[tuple[list[Any], str]] = [
    ([-1, 0, 1, 1, 2, 2, 1, 2, 3], r"edge 0, i = -1, .*does not join two vertices i < j of 0 to 2"),
    ([0, 0, 1, 1, 2, 3, 1, 2, 3], "edge 2, .*does not join"),
    ([0, 0, 1, 1, 2, 2**31 - 1, 1, 2, 3], "edge 2, .*does not join"),
    ([0, 0, 2, 1, 2, 2, 1, 2, 3], "edge 2, .*does not join"),
    ([0, 0, 2, 1, 2, 1, 1, 2, 3], "edge 2, .*does not join"),
    ([0, 0, 0, 1, 2, 2, 1, 2, 3], "edge 2, .*repeated or out of order"),
    ([0, 0, 1, 2, 1, 2, 1, 2, 3], "edge 1, .*repeated or out of order"),
    ([0, 1, 0, 1, 2, 2, 1, 2, 3], "edge 2, .*repeated or out of order"),
    ([0, 0, 1, 1, 2, 2, 1, -2, 3], "edge 1, .*weight = -2.0, .*negative or not finite"),
    ([0, 0, 1, 1, 2, 2, -0.0, 2, 3], "edge 0, .*weight = -0.0, .*negative"),
    ([0, 0, 1, 1, 2, 2, 1, 2, math.nan], "edge 2, .*not finite"),
    ([0, 0, 1, 1, 2, 2, 1, math.inf, 3], "edge 1, .*not finite"),
]

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


def apart_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of items 0 to 999, each with an edge to hub 1000 or 1001, and 5-9 and 700-999.

    Only the last of the edges has a weight of 2, others 1. There are two edges between 1000 items, so that smaller ends
    have 8 low bits and high bits below 4.
    """
    arrays = [
        entry("degree", "uint8", [251], 251),
        entry("j", "uint8", [125], 125),
        entry("weight", "uint8", [126], 126),
        entry("local", "uint8", [1 + 2 + 3], 6),
    ]
    packing = {"j_bits": 1, "j_least": 1000, "weight_bits": 1, "least": 1.0, "greatest": 2.0, "n_local": 2}
    content = {"n_vertices": 1002, "n_items": 1000, "n_edges": 1002, **packing}
    header = {"kind": "graph", "content": content, "arrays": arrays, "metadata": {}}
    # Edge 5-9 is the sixth, 700-999 the one of place 701.
    weights = (1 << 701).to_bytes(126, "little")
    local = bytes([0b001001, *low_bits(5, 700 % 256), *larger_ends(9, 999)])
    return header, bytes([0b01010101] * 250 + [0]) + bytes([0b10101010] * 125) + weights + local


def low_bits(first: int, second: int) -> bytes:
    """Return two numbers of 8 bits."""
    return bytes([first, second])


def larger_ends(first: int, second: int) -> bytes:
    """Return two numbers of 10 bits."""
    return (first | second << 10).to_bytes(3, "little")


def product_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of a product: two factors of hubs with positions and one that is a graph.

    Hubs of the first are at 0 and 1.5 on a grid of two bits, those of the second at (0, 1), (2, 3) and (4, 5); the
    graph is the edge 0-1 of weight 3. Four items share three vertices of lengths 0, 0.5 and 0.25.
    """
    arrays = [
        entry("codes", "uint8", [3], 3),
        entry("positions", "uint8", [8 + 1 + 24], 33),
        entry("lengths", "uint8", [8 + 1], 9),
        entry("places", "uint8", [1], 1),
        entry("2.degree", "uint8", [1], 1),
        entry("2.j", "uint8", [1], 1),
        entry("2.weight", "uint8", [1], 1),
    ]
    packing = {"j_bits": 1, "j_least": 1, "weight_bits": 1, "least": 3.0, "greatest": 3.0}
    content = {
        "n_items": 4,
        "n_vertices": 3,
        "power": 1.0,
        "gauge": {"name": "power", "exponent": 2.0},
        "length_bits": 2,
        "factors": [[2, 1, 2], [3, 2, 32], {"n_vertices": 2, "n_items": 2, "n_edges": 1, **packing}],
    }
    header = {"kind": "product", "content": content, "arrays": arrays, "metadata": {}}
    # Codes 0, 1, 1 in one bit; 2, 0, 1 in two; 0, 0, 1 in one. Levels 0 and 3; 0, 2 and 1. Places 0, 1, 2, 1.
    body = bytes([0b110, 0b010010, 0b100])
    body += struct.pack("<2f", 0, 0.5) + bytes([0b1100]) + struct.pack("<6f", 0, 1, 2, 3, 4, 5)
    body += struct.pack("<2f", 0, 0.25) + bytes([0b011000]) + bytes([0b01100100])
    return header, body + bytes([0b001, 0, 0])


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


def refused(path: Path, data: bytes, match: str | None = None, load: Callable[[Path], Any] = Graph.load) -> str:
    """Loading refuses the file, with a message of one line that names it."""
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=match) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def refused_without_belief(path: Path, data: bytes) -> None:
    """Loading refuses the file for its header, and takes no memory for counts that the file does not bear out."""
    tracemalloc.start()
    try:
        refused(path, data, "header|need .* bytes")
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()
    with pytest.raises(FileFormatError):
        container.describe(path)


def is_refused(path: Path, data: bytes, load: Callable[[Path], Any] = Graph.load) -> bool:
    """Whether both readers refuse the file; quicker than ``pytest.raises`` where there are thousands."""
    path.write_bytes(data)
    n_refusals = 0
    for reader in (load, container.describe):
        try:
            reader(path)
        except FileFormatError:
            n_refusals += 1
    return n_refusals == 2


def damaged(data: st.DataObject, contents: bytes) -> bytes:
    """Return a file with a part of it changed; one of its header, or any bytes of it."""
    length = struct.unpack_from("<I", contents, 12)[0]
    if data.draw(st.booleans()):
        header = json.loads(contents[16 : 16 + length])
        place = data.draw(st.sampled_from([header, header["content"], *header["arrays"]]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(st.sampled_from(CLAIMS))
        text = json.dumps(header).encode()
        return contents[:12] + struct.pack("<I", len(text)) + text + contents[16 + length :]
    begin = data.draw(st.integers(0, len(contents)))
    end = data.draw(st.integers(begin, min(begin + 8, len(contents))))
    return contents[:begin] + data.draw(st.binary(max_size=12)) + contents[end:]
