"""Files: what was saved comes back, what was not is refused, and a failed save harms nothing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import pickle
import signal
import socket
import stat
import struct
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige import Graph
from prodige.graph import fileformat
from prodige.graph.fileformat import FileFormatError
from prodige.graph.packing import Packing
from strategies import Edges, graphs

HUGE = 2**62

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


@pytest.fixture
def graph() -> Graph:
    return Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, 3, 0.5], n_items=4)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all examples of a property."""
    return tmp_path_factory.mktemp("files")


# -- round trips -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(edges=graphs(), metadata=st.dictionaries(st.text(), json_values, max_size=4))
def test_what_was_saved_comes_back(directory: Path, edges: Edges, metadata: dict[str, Any]) -> None:
    path = directory / "round.prodige"
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    graph.save(path, metadata)
    loaded = Graph.load(path)
    assert loaded == graph
    assert hash(loaded) == hash(graph)
    assert [column.dtype for column in loaded.edges] == [np.int32, np.int32, np.float32]
    assert not any(column.flags.writeable for column in loaded.edges)
    np.testing.assert_array_equal(loaded.distances(), graph.distances())
    assert fileformat.describe(path) == (
        1,
        path.stat().st_size,
        graph.n_vertices,
        graph.n_items,
        graph.n_edges,
        metadata,
        32,
    )


@settings(max_examples=60)
@given(edges=graphs(), bits=st.integers(1, 16), metadata=st.dictionaries(st.text(), json_values, max_size=4))
def test_what_was_packed_comes_back_rounded(directory: Path, edges: Edges, bits: int, metadata: dict[str, Any]) -> None:
    path = directory / "packed.prodige"
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    graph.save(path, metadata, bits=bits)
    loaded = Graph.load(path)
    assert loaded == graph.rounded(bits)
    assert [column.dtype for column in loaded.edges] == [np.int32, np.int32, np.float32]
    description = fileformat.describe(path)
    assert (description.version, description.weight_bits, description.metadata) == (2, bits, metadata)
    first = path.read_bytes()
    loaded.save(path, metadata, bits=bits)
    assert path.read_bytes() == first


@pytest.mark.parametrize("bits", [None, 1, 8, 16])
def test_the_size_is_known_before_a_file_is_written(path: Path, graph: Graph, bits: int | None) -> None:
    for one in (graph, Graph.from_edges([], [], [], n_vertices=7)):
        one.save(path, bits=bits)
        assert fileformat.size(one, bits) == path.stat().st_size


def test_equal_graphs_make_equal_files(path: Path, graph: Graph) -> None:
    graph.save(path, {"made by": "Ada"})
    first = path.read_bytes()
    pickle.loads(pickle.dumps(graph)).save(path, {"made by": "Ada"})
    assert path.read_bytes() == first
    graph.save(path)
    assert path.read_bytes() != first
    assert fileformat.describe(path).metadata == {}


def test_bytes_are_as_documented(path: Path, graph: Graph) -> None:
    """The layout, read by hand: a file written today must mean the same tomorrow."""
    graph.save(path, {"a": "ä"})
    data = path.read_bytes()
    assert data[:8] == b"\x89PRODIGE"
    version, length = struct.unpack("<II", data[8:16])
    assert (version, length % 8) == (1, 0)
    header = json.loads(data[16 : 16 + length].decode("ascii"))
    assert header == {
        "n_vertices": 5,
        "n_items": 4,
        "n_edges": 5,
        "sections": [
            {"name": "i", "dtype": "int32", "offset": 0, "length": 20},
            {"name": "j", "dtype": "int32", "offset": 20, "length": 20},
            {"name": "weight", "dtype": "float32", "offset": 40, "length": 20},
        ],
        "metadata": {"a": "ä"},
    }
    body = data[16 + length : -32]
    assert body == struct.pack("<10i5f", 0, 0, 1, 2, 3, 1, 4, 4, 4, 4, 0.5, 1, 1, 2, 3)
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


def test_the_files_of_version_1_are_read_for_ever(path: Path) -> None:
    header = (
        b'{"metadata":{},"n_edges":1,"n_items":2,"n_vertices":3,"sections":['
        b'{"name":"i","dtype":"int32","offset":0,"length":4},'
        b'{"offset":4,"length":4,"dtype":"int32","name":"j"},'
        b'{"name":"weight","dtype":"float32","offset":8,"length":4}]}'
    )
    data = b"\x89PRODIGE" + struct.pack("<II", 1, len(header)) + header + struct.pack("<iif", 0, 2, 1.5)
    path.write_bytes(data + hashlib.sha256(data).digest())
    assert Graph.load(path) == Graph.from_edges([0], [2], [1.5], n_items=2)


def test_paths_of_all_kinds(tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: list[Any] = ["bare", Path("no ending.txt"), "größe.prodige", os.fsencode("bytes"), "a" * 255]
    for name in names:
        graph.save(name)
        assert Graph.load(name) == graph
    assert sorted(os.listdir()) == sorted(os.fsdecode(name) for name in names)
    with pytest.raises(TypeError, match="path must be a str or path-like, got 3 of type int"):
        graph.save(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="path must be"):
        Graph.load(None)  # type: ignore[arg-type]


# -- damage and attacks ----------------------------------------------------------------------------------------------


def refused(path: Path, data: bytes, match: str | None = None) -> str:
    """Loading refuses the file, with a message of one line that names it."""
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=match) as caught:
        Graph.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def assemble(header: Any, body: bytes = b"", version: int = 1, magic: bytes = b"\x89PRODIGE") -> bytes:
    """Return a file with a correct checksum, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = magic + struct.pack("<II", version, len(text)) + text + body
    return data + hashlib.sha256(data).digest()


def parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body: edges 0-1, 0-2 and 1-2."""
    sections = [
        {"name": "i", "dtype": "int32", "offset": 0, "length": 12},
        {"name": "j", "dtype": "int32", "offset": 12, "length": 12},
        {"name": "weight", "dtype": "float32", "offset": 24, "length": 12},
    ]
    header = {"n_vertices": 3, "n_items": 3, "n_edges": 3, "sections": sections, "metadata": {}}
    return header, struct.pack("<6i3f", 0, 0, 1, 1, 2, 2, 1, 2, 3)


def test_assembled_parts_are_sound(path: Path) -> None:
    path.write_bytes(assemble(*parts()))
    assert Graph.load(path) == Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 3])


def is_refused(path: Path, data: bytes) -> bool:
    """Whether both readers refuse the file; quicker than ``pytest.raises`` where there are thousands."""
    path.write_bytes(data)
    n_refusals = 0
    for reader in (Graph.load, fileformat.describe):
        try:
            reader(path)
        except FileFormatError:
            n_refusals += 1
    return n_refusals == 2


@pytest.mark.parametrize("bits", [None, 8])
def test_every_flipped_bit_is_refused(path: Path, bits: int | None) -> None:
    Graph.from_edges([0], [1], [1.0]).save(path, bits=bits)
    data = path.read_bytes()
    assert not is_refused(path, data)
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            assert is_refused(path, bytes(damaged)), f"bit {bit} of byte {position}"


def test_every_truncation_and_anything_added_is_refused(path: Path, graph: Graph) -> None:
    graph.save(path)
    data = path.read_bytes()
    for length in range(len(data)):
        assert is_refused(path, data[:length])
        assert is_refused(path, data[length + 1 :])
    for extra in (b"\0", b"\n", data):
        refused(path, data + extra)
    refused(
        path, data[:-32] + bytes(8) + hashlib.sha256(data[:-32] + bytes(8)).digest(), "need 60 bytes .* room for 68"
    )


# Numbers that a header may claim, and what is no number at all.
CLAIMS: list[Any] = [-1, 0, 1, 2, 3, 8, 2**22, 2**26, 2**31 - 2, 2**31, HUGE, 1.5, 1e308, True, None, "3", [], {}]


def damaged(data: st.DataObject, contents: bytes) -> bytes:
    """Return a file with a part of it changed; one of its header, or any bytes of it."""
    length = struct.unpack_from("<I", contents, 12)[0]
    if data.draw(st.booleans()):
        header = json.loads(contents[16 : 16 + length])
        place = data.draw(st.sampled_from([header, *header["sections"]]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(st.sampled_from(CLAIMS))
        text = json.dumps(header).encode()
        return contents[:12] + struct.pack("<I", len(text)) + text + contents[16 + length :]
    begin = data.draw(st.integers(0, len(contents)))
    end = data.draw(st.integers(begin, min(begin + 8, len(contents))))
    return contents[:begin] + data.draw(st.binary(max_size=12)) + contents[end:]


@settings(max_examples=300, deadline=None)
@given(edges=graphs(max_items=8), bits=st.none() | st.integers(1, 16), data=st.data())
def test_damage_is_refused_or_harmless(directory: Path, edges: Edges, bits: int | None, data: st.DataObject) -> None:
    """Also where the checksum was made anew: what is read then is a graph like any other."""
    path = directory / "damaged.prodige"
    Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items).save(path, bits=bits)
    sound = path.read_bytes()
    contents = damaged(data, sound)
    if contents != sound:
        assert is_refused(path, contents)
    contents = contents[:-32] + hashlib.sha256(contents[:-32]).digest()
    path.write_bytes(contents)
    try:
        graph = Graph.load(path)
    except FileFormatError:
        return
    assert graph == Graph.from_edges(*graph.edges, graph.n_vertices, graph.n_items)
    assert graph.degrees().sum() == 2 * graph.n_edges
    assert fileformat.describe(path)[2:5] == (graph.n_vertices, graph.n_items, graph.n_edges)


@given(data=st.binary(max_size=200))
def test_noise_is_refused(directory: Path, data: bytes) -> None:
    refused(directory / "noise", data)
    refused(directory / "noise", b"\x89PRODIGE\1\0\0\0" + data)


def test_messages_say_what_to_do(path: Path) -> None:
    header, body = parts()
    assert "upgrade prodige" in refused(
        path, assemble(header, body, version=3), "version 3 .* newest one known here is 2"
    )
    assert "restore a copy" in refused(path, assemble(header, body, version=0), "no version 0")
    assert "right file" in refused(path, assemble(header, body, magic=b"\x89PNG\r\n\x1a\n"), "does not start like one")
    assert "restore a copy" in refused(path, assemble(header, body)[:-1] + b"!", "checksum does not match")
    refused(path, b"", "does not start like one")
    refused(path, b"\x89PRODIGE", "ends too early, after 8 bytes")


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "more vertices than ids": lambda h: h | {"n_vertices": 2**31 - 1},
    "absurd vertices": lambda h: h | {"n_vertices": HUGE, "n_items": HUGE},
    "vertices nothing needs": lambda h: h | {"n_vertices": 2**31 - 2},
    "absurd edges": lambda h: h | {"n_edges": HUGE},
    "absurd edges with sections": lambda h: h | {"n_edges": 2**30 - 1, "sections": fileformat.sections(2**30 - 1)},
    "more edges than there are": lambda h: h | {"n_edges": 4, "sections": fileformat.sections(4)},
    "fewer edges than there are": lambda h: h | {"n_edges": 2, "sections": fileformat.sections(2)},
    "edges against sections": lambda h: h | {"n_edges": 2},
    "negative edges": lambda h: h | {"n_edges": -3},
    "more items than vertices": lambda h: h | {"n_items": 4},
    "no items": lambda h: h | {"n_items": 0},
    "a fraction": lambda h: h | {"n_items": 3.0},
    "a truth value": lambda h: h | {"n_items": True},
    "a string": lambda h: h | {"n_edges": "3"},
    "a list": lambda h: [h],
    "a number": lambda h: 3,
    "nothing": lambda h: {},
    "a key too few": lambda h: {key: h[key] for key in h if key != "metadata"},
    "a key too many": lambda h: h | {"code": "import os"},
    "no sections": lambda h: h | {"sections": []},
    "sections of another kind": lambda h: h | {"sections": {"i": 0}},
    "a section twice": lambda h: h | {"sections": [h["sections"][0], h["sections"][0], h["sections"][2]]},
    "a section too many": lambda h: h | {"sections": [*h["sections"], h["sections"][0]]},
    "another order": lambda h: h | {"sections": h["sections"][::-1]},
    "metadata of another kind": lambda h: h | {"metadata": ["Ada"]},
    "an infinity": lambda h: h | {"metadata": {"a": float("inf")}},
    "deep metadata": lambda h: h | {"metadata": {"a": json.loads("[" * 64 + "]" * 64)}},
    "no JSON": lambda h: b"n_edges = 3",
    "cut JSON": lambda h: json.dumps(h).encode()[:-1],
    "two JSON texts": lambda h: json.dumps(h).encode() * 2,
    "a key twice": lambda h: json.dumps(h).encode()[:-1] + b', "n_edges": 3}',
    "no ASCII": lambda h: json.dumps(h | {"metadata": {"ä": 1}}, ensure_ascii=False).encode(),
    "very deep lists": lambda h: b"[" * 1_000_000,
    "very deep objects": lambda h: b'{"a":' * 200_000,
    "a very long number": lambda h: b"1" * 1_000_000,
    "an empty header": lambda h: b"",
    "a header beyond the limit": lambda h: json.dumps(h).encode() + b" " * 2**24,
}


@pytest.mark.parametrize("attack", HEADERS)
def test_headers_that_lie_are_refused(path: Path, attack: str) -> None:
    header, body = parts()
    data = assemble(HEADERS[attack](header), body)
    tracemalloc.start()
    try:
        refused(path, data, "header|need .* bytes")
        assert tracemalloc.get_traced_memory()[1] < 2**27  # counts are not believed before the file bears them out
    finally:
        tracemalloc.stop()
    with pytest.raises(FileFormatError):
        fileformat.describe(path)


@pytest.mark.parametrize("section", [0, 1, 2])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("offset", value) for value in (-12, 4, 1, 8.0, HUGE, None)],
        *[("length", value) for value in (0, -12, 11, 24, 12.0, HUGE, "12")],
        *[("dtype", value) for value in ("int64", "float16", "object", "O", ">i4", "<i4", "S4", None)],
        *[("name", value) for value in ("", "k", "weights", None)],
        ("key", 1),
    ],
)
def test_sections_that_lie_are_refused(path: Path, section: int, key: str, value: Any) -> None:
    header, body = parts()
    header["sections"][section][key] = value
    refused(path, assemble(header, body), "sections other than i, j and weight of 3 edges")


def packed_parts() -> tuple[dict[str, Any], bytes]:
    """Return a sound header and body of version 2: edges 0-1, 0-2 and 1-2 of weights 1, 2 and 4."""
    sections = [
        {"name": "degree", "bits": 1, "offset": 0, "length": 1},
        {"name": "j", "bits": 1, "least": 1, "offset": 1, "length": 1},
        {"name": "weight", "bits": 2, "least": 1.0, "greatest": 4.0, "offset": 2, "length": 1},
    ]
    header = {"n_vertices": 3, "n_items": 3, "n_edges": 3, "sections": sections, "metadata": {}}
    return header, bytes([0b001011, 0b110, 0b110100])


def test_packed_bytes_are_as_documented(path: Path) -> None:
    """Read and written by hand: a packed file must mean the same tomorrow."""
    header, body = packed_parts()
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 4])
    path.write_bytes(assemble(header, body, version=2))
    assert Graph.load(path) == graph
    graph.save(path, bits=2)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    assert json.loads(data[16 : 16 + length]) == header
    assert data[16 + length : -32] == body


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        *[(section, "offset", value) for section in range(3) for value in (-1, 7, 1.0, HUGE, None)],
        *[(section, "length", value) for section in range(3) for value in (0, 2, 1.0, HUGE)],
        *[(section, "bits", value) for section in range(3) for value in (0, -1, 40, 1.0, True, None)],
        *[(1, "least", value) for value in (-1, 4, 1.0, HUGE, None)],
        *[(2, "least", value) for value in (-1.0, -0.0, 5.0, 1, 0.1, 1e39, None, "1")],
        *[(2, "greatest", value) for value in (0.5, 4, 0.1, 1e39, HUGE, None)],
        *[(section, "name", value) for section in range(3) for value in ("i", "", None)],
        (2, "key", 1),
    ],
)
def test_packed_sections_that_lie_are_refused(path: Path, section: int, key: str, value: Any) -> None:
    header, body = packed_parts()
    header["sections"][section][key] = value
    refused(path, assemble(header, body, version=2), "header has sections|need .* bytes")


@pytest.mark.parametrize("sections", [None, 3, [], [1, 2, 3], [{}, {}, {}], {"degree": 1}, "abc"])
def test_packed_sections_of_another_kind_are_refused(path: Path, sections: Any) -> None:
    header, body = packed_parts()
    refused(path, assemble(header | {"sections": sections}, body, version=2), "header has sections that make no sense")


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ([0b000011, 0b110, 0b110100], "degrees are not those of 3 vertices and 3 edges"),
        ([0b011011, 0b110, 0b110100], "degrees"),
        ([0b100011, 0b110, 0b110100], "degrees"),
        ([0b1001011, 0b110, 0b110100], "bits behind the last number"),
        ([0b001011, 0b1110, 0b110100], "bits behind"),
        ([0b001011, 0b110, 0b1110100], "bits behind"),
        ([0b001011, 0b111, 0b110100], "edge 1, .*repeated or out of order"),
        ([0b001011, 0b010, 0b110100], "edge 2, .*does not join"),
        ([0b010101, 0b110, 0b110100], "edge 2, .*does not join"),
    ],
)
def test_packed_edges_that_no_graph_has_are_refused(path: Path, body: list[int], match: str) -> None:
    header, _ = packed_parts()
    refused(path, assemble(header, bytes(body), version=2), match)


def test_ends_that_wrap_around_are_refused(path: Path) -> None:
    """In 32 bits an end of 2**32 + 1 would be 1."""
    header, _ = packed_parts()
    header["n_edges"], header["n_vertices"] = 1, 3
    header["sections"][1] |= {"bits": 31, "least": 3, "length": 4}
    header["sections"][2] |= {"offset": 5, "bits": 2, "length": 1}
    body = bytes([0b0001]) + struct.pack("<I", 2**31 - 1) + bytes([0])
    refused(path, assemble(header, body, version=2), "goes to 2147483650, and there are 3 vertices")


def test_headers_of_packed_files_are_not_believed(path: Path) -> None:
    header, body = packed_parts()
    for change in ({"n_edges": 2**30 - 1}, {"n_vertices": 2**31 - 2}, {"n_edges": 4}, {"n_vertices": 11}):
        lie = header | change
        packing = Packing.from_sections(lie["sections"], lie["n_vertices"], lie["n_edges"])
        refused(path, assemble(lie, body, version=2), "header")
        refused(path, assemble(lie | {"sections": packing.sections()}, body, version=2), "need .* bytes|header|degrees")


def test_header_length_is_not_believed(path: Path) -> None:
    for length in (2**32 - 1, 2**24 + 1, 2**24, 1000, 0):
        data = b"\x89PRODIGE" + struct.pack("<II", 1, length) + assemble(*parts())[16:-32]
        refused(path, data + hashlib.sha256(data).digest(), "header|ends too early")


@pytest.mark.parametrize(
    ("values", "match"),
    [
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
        ([0, 0, 1, 1, 2, 2, 1, 2, np.nan], "edge 2, .*not finite"),
        ([0, 0, 1, 1, 2, 2, 1, np.inf, 3], "edge 1, .*not finite"),
    ],
)
def test_edges_that_no_graph_has_are_refused(path: Path, values: list[Any], match: str) -> None:
    header, _ = parts()
    refused(path, assemble(header, struct.pack("<6i3f", *values)), match)


@pytest.mark.parametrize("change", [-500_000, -40, -1, 1])
def test_a_file_that_shrinks_or_grows_while_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    Graph.from_edges(range(100_000), range(1, 100_001), 1.0).save(path)
    size = path.stat().st_size
    read_description = fileformat.read_description

    def disturbed(reader: fileformat.Reader) -> Any:
        description = read_description(reader)
        os.truncate(path, size + change)
        return description

    monkeypatch.setattr(fileformat, "read_description", disturbed)
    with pytest.raises(FileFormatError, match=r"shorter while it was read|checksum"):
        Graph.load(path)


def test_what_is_no_file(tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Graph.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"nowhere/x\.prodige"):
        graph.save(tmp_path / "nowhere" / "x.prodige")
    for operation in (Graph.load, fileformat.describe, graph.save):
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            operation(tmp_path)
    with pytest.raises(IsADirectoryError):
        graph.save(f"{tmp_path}/new/")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileFormatError, match="pipe or a device"):
        Graph.load(pipe)
    with pytest.raises(ValueError, match=r"path .* is a pipe or a device; save to a file"):
        graph.save(pipe)
    assert os.listdir(tmp_path) == ["pipe"]


def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: a pipe that nobody writes to would be waited for."""
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    pipe, link, socket_path = Path("pipe"), Path("link"), Path("socket")
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_path))
        for path in (pipe, link, socket_path, Path(os.devnull)):
            with pytest.raises(FileFormatError, match=f"'{path}' cannot be read as a file: it is a pipe or a device"):
                fileformat.open_regular(path)
    with pytest.raises(FileFormatError, match="cannot be read as a file: it is a directory; give the name of a file"):
        fileformat.open_regular(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fileformat.open_regular(tmp_path / "nowhere")
    (tmp_path / "file").write_bytes(b"some bytes")
    (tmp_path / "other").symlink_to("file")
    for name in ("file", "other"):
        with fileformat.open_regular(tmp_path / name) as file:
            assert file.read() == b"some bytes"


def test_a_graph_and_its_description_are_of_one_file(path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.save(path, {"which": "old"})
    size = path.stat().st_size
    Graph.from_edges([0], [1], [1]).save(path.with_name("new"), {"which": "new"})
    read_description = fileformat.read_description

    def replace(reader: fileformat.Reader) -> Any:
        description = read_description(reader)
        if path.with_name("new").exists():
            os.replace(path.with_name("new"), path)
        return description

    monkeypatch.setattr(fileformat, "read_description", replace)
    loaded, description = Graph.load_described(path)
    assert loaded == graph
    assert description == (1, size, 5, 4, 5, {"which": "old"}, 32)
    assert fileformat.describe(path).metadata == {"which": "new"}


def test_the_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(fileformat.refusal("x", "it is empty", "fill it")))
    assert isinstance(error, FileFormatError)
    assert str(error) == "'x' cannot be read as a .prodige file: it is empty; fill it"


# -- what cannot be saved --------------------------------------------------------------------------------------------


def circle() -> dict[str, Any]:
    result: dict[str, Any] = {}
    result["self"] = result
    return result


@pytest.mark.parametrize(
    ("metadata", "match"),
    [
        ({"a": float("nan")}, "cannot be written as JSON"),
        ({"a": np.arange(3)}, "cannot be written as JSON"),
        ({"a": b"bytes"}, "cannot be written as JSON"),
        ({"a": object()}, "cannot be written as JSON"),
        (circle(), "cannot be written as JSON"),
        ({"a": json.loads("[" * 900 + "]" * 900)}, "JSON|nested 901 levels"),
        ({"a": json.loads("[" * 63 + "]" * 63)}, "nested 64 levels deep; at most 63"),
        ({1: "a"}, "read back as {'1': 'a'}, not as the {1: 'a'}"),
        ({"a": {2: "b"}}, "read back as"),
        ({"a": (1, 2)}, "lists for tuples"),
        ({"a": "b" * 2**24}, "at most 16777216 are possible"),
    ],
)
def test_metadata_that_a_file_would_change_is_refused(path: Path, graph: Graph, metadata: Any, match: str) -> None:
    with pytest.raises(ValueError, match="metadata .*" + match):
        graph.save(path, metadata)
    assert not path.exists()


def test_metadata_at_the_limits(path: Path, graph: Graph) -> None:
    metadata = {"deep": json.loads("[" * 62 + "]" * 62), "long": "b" * (2**24 - 1000), "none": None}
    graph.save(path, metadata)
    assert fileformat.describe(path).metadata == metadata
    with pytest.raises(TypeError, match="metadata must be a dict, got 'Ada' of type str"):
        graph.save(path, "Ada")  # type: ignore[arg-type]


def test_vertices_without_edges_have_a_limit(path: Path) -> None:
    most = Graph.from_edges([0], [1], [1.0], n_vertices=2**22 + 2, n_items=2)
    most.save(path)
    assert Graph.load(path) == most
    # Made in a way that checks nothing, as parts of the library do that know what they have.
    too_many = Graph._make(most.edges, 2**22 + 3, 2)
    with pytest.raises(ValueError, match=r"cannot be saved: 4194307 vertices for 1 edges would take 0\.2 GB; .* leave"):
        too_many.save(path)
    header, body = parts()
    for n_vertices, estimate in ((2**26, "3.4 GB"), (2**31 - 2, "107.4 GB")):
        message = refused(path, assemble(header | {"n_vertices": n_vertices}, body), "header claims what no graph has")
        assert f"{n_vertices} vertices for 3 edges would take {estimate}" in message


def test_a_small_file_takes_little_memory(path: Path) -> None:
    """The most that 400 bytes can ask for, in a process that has 1 GB of memory more than it needs to start."""
    Graph.from_edges([0], [1], [1.0], n_vertices=2**22 + 2).save(path)
    assert path.stat().st_size < 400
    program = """
        import resource, sys
        from prodige import Graph
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 2**30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        graph = Graph.load(sys.argv[1])
        print(graph.distance(0, 1), graph.kneighbors([0], k=1), graph.is_connected)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert (result.returncode, result.stdout[:4]) == (0, "1.0 "), result.stderr


# -- saving is all or nothing ----------------------------------------------------------------------------------------


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException) -> Iterator[None]:
    """Let a call of the operating system fail while a file is saved."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        if call == "write":
            # What a file is asked to write first is less than its buffer: the disk is full when that is emptied.
            original = open

            class Full:
                def __init__(self, *arguments: Any) -> None:
                    self.file = original(*arguments)
                    self.written = 0

                def __enter__(self) -> Any:
                    return self

                def __exit__(self, *arguments: Any) -> None:
                    self.file.close()

                def write(self, data: bytes) -> int:
                    self.written += 1
                    if self.written == 3:
                        raise error
                    return int(self.file.write(data))

            patch.setattr("builtins.open", Full)
        else:
            patch.setattr(os, call, fail)
        yield


FAILURES = [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    OSError(errno.EIO, os.strerror(errno.EIO), "a name nobody knows"),
    KeyboardInterrupt(),
    MemoryError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: repr(error))
@pytest.mark.parametrize("call", ["write", "fsync", "replace", "chmod"])
def test_a_failed_save_leaves_the_old_file(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    graph.save(path, {"which": "old"})
    old = path.read_bytes()
    other = Graph.from_edges([0], [1], [1])
    with failing(monkeypatch, call, error), pytest.raises(type(error)) as caught:
        other.save(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(path)
    other.save(path)
    assert Graph.load(path) == other


def test_a_failed_first_save_leaves_nothing(path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("write", "fsync", "replace"):
        with failing(monkeypatch, call, FAILURES[0]), pytest.raises(OSError, match="No space left"):
            graph.save(path)
        assert os.listdir(path.parent) == []


def test_the_contents_are_on_the_disk_before_the_name(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.save(path)
    size = path.stat().st_size
    events: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        state = os.fstat(descriptor)
        events.append(("fsync of the directory", 0) if stat.S_ISDIR(state.st_mode) else ("fsync", state.st_size))
        fsync(descriptor)

    def note_replace(source: str, target: str) -> None:
        assert os.path.dirname(source) == os.path.dirname(target)
        events.append(("replace", os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    graph.save(path)
    assert events == [("fsync", size), ("replace", size), ("fsync of the directory", 0)]


def test_a_full_disk_for_real(tmp_path: Path) -> None:
    """The file size limit of a process makes the system itself refuse to write."""
    program = """
        import resource, signal, sys
        from prodige import Graph
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        graph = Graph.from_edges(range(5000), range(1, 5001), 1.0)
        Graph.from_edges([0], [1], [1]).save(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            graph.save(sys.argv[1])
        except OSError as error:
            print(error.filename == sys.argv[1], Graph.load(sys.argv[1]).n_edges)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "x")]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert result.stdout == "True 1\n"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_permissions_are_those_of_open(tmp_path: Path, graph: Graph, umask: int) -> None:
    before = os.umask(umask)
    try:
        graph.save(tmp_path / "new")
        (tmp_path / "by open").write_bytes(b"")
        existing = tmp_path / "existing"
        existing.write_bytes(b"")
        existing.chmod(0o640)
        graph.save(existing)
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "by open").stat().st_mode
    assert stat.S_IMODE(existing.stat().st_mode) == 0o640
    assert Graph.load(existing) == graph


def test_a_file_that_may_not_be_written_is_not_replaced(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"mine")
    monkeypatch.setattr(os, "access", lambda name, mode: mode != os.W_OK)  # root may write everywhere
    with pytest.raises(PermissionError, match="some"):
        graph.save(path)
    assert path.read_bytes() == b"mine"


def test_a_link_stays_a_link(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "latest.prodige"
    link.symlink_to(Path("data", "real.prodige"))
    for _ in range(2):  # where the link leads there is nothing at first
        graph.save(link)
        assert link.is_symlink()
        assert os.listdir(tmp_path / "data") == ["real.prodige"]
        assert Graph.load(link) == Graph.load(tmp_path / "data" / "real.prodige") == graph


# -- what killed processes leave -------------------------------------------------------------------------------------

# Writes half a file, says so, and goes on when it is told to.
SAVING = """
    import sys
    from prodige.graph.fileformat import replacing
    with replacing(sys.argv[1]) as file:
        file.write(b"half")
        file.flush()
        print("writing", flush=True)
        sys.stdin.readline()
        file.write(b" and half")
"""


@contextmanager
def saving(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that is in the middle of writing a file."""
    program = [sys.executable, "-c", textwrap.dedent(SAVING), str(path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_save_removes_what_a_killed_one_left(path: Path, graph: Graph, number: signal.Signals) -> None:
    with saving(path) as first, saving(path) as second:
        for process in (first, second):
            process.send_signal(number)
            assert process.wait(60) == -number
    assert len(os.listdir(path.parent)) == 2  # which are two drafts
    graph.save(path.with_name("another"))  # leaves alone what is not its own
    assert len(os.listdir(path.parent)) == 3
    graph.save(path)
    assert sorted(os.listdir(path.parent)) == ["another", path.name]
    assert Graph.load(path) == graph


def test_a_failed_save_removes_what_a_killed_one_left(path: Path) -> None:
    with saving(path) as process:
        process.kill()
    with pytest.raises(RuntimeError), fileformat.replacing(str(path)):
        raise RuntimeError
    assert os.listdir(path.parent) == []


def test_saves_at_the_same_time_leave_each_other_alone(path: Path, graph: Graph) -> None:
    with saving(path) as first, saving(path) as second:
        graph.save(path)
        assert Graph.load(path) == graph
        assert len(os.listdir(path.parent)) == 3
        for process in (second, first):
            assert process.communicate("go on\n", timeout=60)[0] == ""
            assert process.returncode == 0
            assert path.read_bytes() == b"half and half"
    assert os.listdir(path.parent) == [path.name]


def test_many_threads_save_to_one_place(path: Path) -> None:
    graphs = [Graph.from_edges([0], [1], [weight]) for weight in range(8)]

    def save_often(graph: Graph) -> None:
        for _ in range(25):
            graph.save(path)
            assert Graph.load(path) in graphs

    with ThreadPoolExecutor(len(graphs)) as pool:
        list(pool.map(save_often, graphs))
    assert os.listdir(path.parent) == [path.name]
    assert Graph.load(path) in graphs


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(
    path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, swept = fcntl.flock, list[str]()

    def late(descriptor: int, how: int) -> None:
        if not swept:  # somebody else was faster
            swept.extend(os.listdir(path.parent))
            fileformat.sweep(str(path.parent), ".prodige-")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    graph.save(path)
    assert len(swept) == 1
    assert os.listdir(path.parent) == [path.name]
    assert Graph.load(path) == graph


def test_files_are_saved_where_there_are_no_locks(path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with saving(path) as process:
        process.kill()
    monkeypatch.setattr(fcntl, "flock", refuse)
    graph.save(path)
    assert Graph.load(path) == graph
    assert len(os.listdir(path.parent)) == 2  # nobody knows whether the other one is in use
