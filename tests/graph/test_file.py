"""Graphs in files: what was saved comes back, and what no graph has is refused."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from files import NO_GRAPH, apart_parts, assemble, entry, larger_ends, low_bits, packed_parts, parts, refused
from prodige import Graph
from prodige.graph import container, file
from prodige.graph.container import FileFormatError
from prodige.graph.reading import Reader
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
    return Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, np.pi, 0.5], n_items=4)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all examples of a property."""
    return tmp_path_factory.mktemp("files")


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
    kind, version, n_bytes, content, stored = container.describe(path)
    assert (kind, version, n_bytes, stored) == ("graph", 3, path.stat().st_size, metadata)
    counts = {"n_vertices": graph.n_vertices, "n_items": graph.n_items, "n_edges": graph.n_edges}
    assert content.items() >= counts.items()


@settings(max_examples=60)
@given(edges=graphs(), bits=st.integers(1, 16), metadata=st.dictionaries(st.text(), json_values, max_size=4))
def test_what_was_packed_comes_back_rounded(directory: Path, edges: Edges, bits: int, metadata: dict[str, Any]) -> None:
    path = directory / "packed.prodige"
    graph = Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, edges.n_items)
    graph.save(path, metadata, bits=bits)
    loaded = Graph.load(path)
    assert loaded == graph.rounded(bits)
    assert [column.dtype for column in loaded.edges] == [np.int32, np.int32, np.float32]
    description = container.describe(path)
    assert (description.version, description.content["weight_bits"], description.metadata) == (3, bits, metadata)
    first = path.read_bytes()
    loaded.save(path, metadata, bits=bits)
    assert path.read_bytes() == first


@pytest.mark.parametrize("bits", [None, 1, 8, 16])
def test_the_size_is_known_before_a_file_is_written(path: Path, graph: Graph, bits: int | None) -> None:
    for one in (graph, Graph.from_edges([], [], [], n_vertices=7)):
        one.save(path, bits=bits)
        assert file.size(one, bits) == path.stat().st_size


def test_equal_graphs_make_equal_files(path: Path, graph: Graph) -> None:
    graph.save(path, {"made by": "Ada"})
    first = path.read_bytes()
    pickle.loads(pickle.dumps(graph)).save(path, {"made by": "Ada"})
    assert path.read_bytes() == first
    graph.save(path)
    assert path.read_bytes() != first
    assert container.describe(path).metadata == {}


def test_bytes_are_as_documented(path: Path, graph: Graph) -> None:
    """The layout, read by hand: a file written today must mean the same tomorrow."""
    graph.save(path, {"a": "ä"})
    data = path.read_bytes()
    assert data[:8] == b"\x89PRODIGE"
    version, length = struct.unpack("<II", data[8:16])
    assert (version, length % 8) == (3, 0)
    header = json.loads(data[16 : 16 + length].decode("ascii"))
    assert header == {
        "kind": "graph",
        "content": {"n_vertices": 5, "n_items": 4, "n_edges": 5, "j_bits": 2, "j_least": 1, "weight_bits": 32},
        "arrays": [
            {"name": "degree", "dtype": "uint8", "shape": [2], "codec": "raw", "length": 2},
            {"name": "j", "dtype": "uint8", "shape": [2], "codec": "raw", "length": 2},
            {"name": "weight", "dtype": "uint8", "shape": [20], "codec": "raw", "length": 20},
        ],
        "metadata": {"a": "ä"},
    }
    body = data[16 + length : -32]
    # Degrees 2, 1, 1, 1 and 0; ends 1, 4, 4, 4 and 4 less 1.
    assert body == bytes([0b10101011, 0b0, 0b11111100, 0b11]) + struct.pack("<5f", 0.5, 1, 1, 2, np.float32(np.pi))
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


def test_packed_bytes_are_as_documented(path: Path) -> None:
    """Read and written by hand: a packed file must mean the same tomorrow."""
    header, body = packed_parts()
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 4])
    path.write_bytes(assemble(header, body))
    assert Graph.load(path) == graph
    graph.save(path, bits=2)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    assert json.loads(data[16 : 16 + length]) == header
    assert data[16 + length : -32] == body


def test_plain_bytes_are_as_documented(path: Path) -> None:
    """As all graphs were written once, and those are still of which next to no vertex has an edge."""
    header, body = parts()
    path.write_bytes(assemble(header, body))
    assert Graph.load(path) == Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 3])
    lonely = Graph.from_edges([0], [1], [1.5], n_vertices=1000)
    lonely.save(path)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    assert [row["name"] for row in json.loads(data[16 : 16 + length])["arrays"]] == ["i", "j", "weight"]
    assert data[16 + length : -32] == struct.pack("<2if", 0, 1, 1.5)
    assert Graph.load(path) == lonely


def test_bytes_of_edges_apart_are_as_documented(path: Path) -> None:
    """Items around two hubs and two edges between items, read and written by hand."""
    header, body = apart_parts()
    path.write_bytes(assemble(header, body))
    items = np.arange(1000)
    ends = np.r_[items, 5, 700], np.r_[1000 + items % 2, 9, 999]
    graph = Graph.from_edges(*ends, np.r_[np.ones(1000), 1, 2], n_vertices=1002, n_items=1000)
    assert Graph.load(path) == graph
    graph.save(path)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    assert json.loads(data[16 : 16 + length]) == header
    assert data[16 + length : -32] == body


@pytest.mark.parametrize(
    ("local", "match"),
    [
        ([0b001011, *low_bits(5, 188), *larger_ends(9, 999)], "degrees are not those of 4 vertices and 2 edges"),
        ([0b100001, *low_bits(5, 188), *larger_ends(9, 999)], "degrees"),
        ([0b1001001, *low_bits(5, 188), *larger_ends(9, 999)], "bits behind the last number"),
        ([0b001001, *low_bits(5, 188), *larger_ends(9, 999 + 1024)], "bits behind"),
        ([0b001001, *low_bits(5, 188), *larger_ends(9, 600)], "edge .*i = 700, j = 600, .*does not join"),
        ([0b001001, *low_bits(5, 188), *larger_ends(9, 1001)], "between items goes to 1001, and there are 1000 items"),
        ([0b000011, *low_bits(9, 5), *larger_ends(11, 12)], "edges between items are out of order"),
        ([0b000011, *low_bits(5, 5), *larger_ends(12, 11)], "edges between items are out of order"),
        ([0b000011, *low_bits(5, 5), *larger_ends(9, 9)], "edge 6, i = 5, j = 9, .*repeated"),
    ],
)
def test_edges_apart_that_no_graph_has_are_refused(path: Path, local: list[int], match: str) -> None:
    header, body = apart_parts()
    refused(path, assemble(header, body[: -len(local)] + bytes(local)), match)


@pytest.mark.parametrize("value", [0, 3, 1002, 1003, -1, True, 2.0, None, HUGE])
def test_counts_of_edges_apart_that_lie_are_refused(path: Path, value: Any) -> None:
    header, body = apart_parts()
    refused(path, assemble(header | {"content": header["content"] | {"n_local": value}}, body), "do not fit together")


def test_ends_of_edges_apart_begin_at_the_hubs(path: Path) -> None:
    header, body = apart_parts()
    refused(path, assemble(header | {"content": header["content"] | {"j_least": 999}}, body), "999 is not a whole")


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
    refused(path, assemble(header, bytes(body)), match)


@pytest.mark.parametrize(("values", "match"), NO_GRAPH)
def test_edges_that_no_graph_has_are_refused(path: Path, values: list[Any], match: str) -> None:
    header, _ = parts()
    refused(path, assemble(header, struct.pack("<6i3f", *values)), match)


@pytest.mark.parametrize("change", [-500_000, -40, -1, 1])
def test_a_file_that_shrinks_or_grows_while_it_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    Graph.from_edges(range(100_000), range(1, 100_001), np.random.RandomState(0).uniform(size=100_000)).save(path)
    size = path.stat().st_size
    read_header = container.read_header

    def disturbed(reader: Reader) -> Any:
        description = read_header(reader)
        os.truncate(path, size + change)
        return description

    monkeypatch.setattr(container, "read_header", disturbed)
    with pytest.raises(FileFormatError, match=r"shorter while it was read|checksum"):
        Graph.load(path)


def test_what_is_no_file(tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Graph.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"nowhere/x\.prodige"):
        graph.save(tmp_path / "nowhere" / "x.prodige")
    for operation in (Graph.load, container.describe, graph.save):
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
    assert container.describe(path).metadata == metadata
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
        content = header["content"] | {"n_vertices": n_vertices}
        message = refused(path, assemble(header | {"content": content}, body), "claims what no graph has")
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


@pytest.mark.parametrize(
    "change",
    [
        *[{"n_vertices": value} for value in (0, -3, 2**31 - 1, HUGE, 3.0, "3", None, True)],
        *[{"n_items": value} for value in (0, 4, 3.0, True, None)],
        *[{"n_edges": value} for value in (2, 4, -3, 2**30 - 1, HUGE, "3", None)],
        {"more": 1},
        {"j_bits": 1},
    ],
)
def test_counts_that_lie_are_refused(path: Path, change: dict[str, Any]) -> None:
    header, body = parts()
    refused(path, assemble(header | {"content": header["content"] | change}, body), "do not fit together")
    header, body = packed_parts()
    change = change if "j_bits" not in change else {"j_bits": 2}
    refused(path, assemble(header | {"content": header["content"] | change}, body), "do not fit together")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("j_bits", value) for value in (0, -1, 40, 1.0, True, None)],
        *[("weight_bits", value) for value in (0, -1, 17, 40, 1.0, True, None)],
        *[("j_least", value) for value in (-1, 4, 1.0, HUGE, None)],
        *[("least", value) for value in (-1.0, -0.0, 5.0, 1, 0.1, 1e39, None, "1")],
        *[("greatest", value) for value in (0.5, 4, 0.1, 1e39, HUGE, None)],
    ],
)
def test_packings_that_lie_are_refused(path: Path, key: str, value: Any) -> None:
    header, body = packed_parts()
    refused(path, assemble(header | {"content": header["content"] | {key: value}}, body), "do not fit together")
    content = {name: number for name, number in header["content"].items() if name != key}
    refused(path, assemble(header | {"content": content}, body), "packed edges need j_bits, j_least")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [entry("i", "int32", [3], 12), entry("j", "int32", [3], 12)],
        [entry("i", "int32", [3], 12), entry("j", "int32", [3], 12), entry("weights", "float32", [3], 12)],
        [entry("i", "int32", [3], 12), entry("j", "int32", [3], 12), entry("weight", "int32", [3], 12)],
        [entry("i", "uint32", [3], 12), entry("j", "int32", [3], 12), entry("weight", "float32", [3], 12)],
        [entry("i", "int32", [3, 1], 12), entry("j", "int32", [3], 12), entry("weight", "float32", [3], 12)],
        [entry("i", "int32", [4], 16), entry("j", "int32", [2], 8), entry("weight", "float32", [3], 12)],
        [*parts()[0]["arrays"], entry("more", "int32", [0], 0)],
    ],
)
def test_arrays_of_no_graph_are_refused(path: Path, rows: list[dict[str, Any]]) -> None:
    header, body = parts()
    body = body[: sum(row["length"] for row in rows)]
    refused(path, assemble(header | {"arrays": rows}, body), "do not fit together")


def test_ends_that_wrap_around_are_refused(path: Path) -> None:
    """In 32 bits an end of 2**32 + 1 would be 1."""
    header, _ = packed_parts()
    header["content"] |= {"n_edges": 1, "j_bits": 31, "j_least": 3}
    header["arrays"][1] |= {"shape": [4], "length": 4}
    body = bytes([0b0001]) + struct.pack("<I", 2**31 - 1) + bytes([0])
    refused(path, assemble(header, body), "goes to 2147483650, and there are 3 vertices")
