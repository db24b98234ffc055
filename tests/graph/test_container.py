"""The container: what is written comes back, and nothing in a file is trusted."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from files import HUGE, assemble, compressed, damaged, entry, is_refused, parts, refused, refused_without_belief
from prodige import Graph
from prodige.graph import container
from prodige.graph.container import FileFormatError, pack_texts, read, size, unpack_texts, write
from strategies import Edges, graphs

MODEL: dict[str, Any] = {
    "codes": np.arange(300, dtype=np.uint8) % 7,
    "filters": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 12),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all examples of a property."""
    return tmp_path_factory.mktemp("files")


@settings(max_examples=60, deadline=None)
@given(
    values=arrays_of.arrays(
        st.sampled_from([np.dtype(kind) for kind in ("u1", "i1", "u2", "i8", "f2", "f4", "f8", "b1", ">i4")]),
        arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0),
    ),
    content=st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
    compress=st.booleans(),
)
def test_round_trip(directory: Path, values: Any, content: dict[str, Any], compress: bool) -> None:
    path = directory / "round.prodige"
    write(path, "text", content, {"values": values}, {"by": "Ada"}, compress)
    assert path.stat().st_size == size("text", content, {"values": values}, {"by": "Ada"}, compress)
    found = read(path)
    assert found.description == ("text", 3, path.stat().st_size, content, {"by": "Ada"}) == container.describe(path)
    array = found.arrays["values"]
    assert array.dtype == values.dtype.newbyteorder("=")
    assert array.flags.writeable
    np.testing.assert_array_equal(array, values)


def test_arrays_are_compressed_where_that_helps_and_a_reader_takes_it(path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "noise": rng.integers(0, 256, 5000).astype(np.uint8),  # would become longer
        "zeros": np.zeros(5000),  # would unpack to more than 64 times its length
        "codes": rng.integers(0, 4, 5000).astype(np.int32),
    }
    write(path, "text", {}, arrays, compress=True)
    data = path.read_bytes()
    header = json.loads(data[16 : 16 + struct.unpack_from("<I", data, 12)[0]])
    assert [row["codec"] for row in header["arrays"]] == ["raw", "raw", "lzma"]
    for name, array in read(path).arrays.items():
        np.testing.assert_array_equal(array, arrays[name])


def test_what_a_file_cannot_hold_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(path, "text", {"step": float("nan")}, {})
    with pytest.raises(TypeError, match="'objects' must have numbers, got object"):
        write(path, "text", {}, {"objects": np.array([{}], dtype=object)})
    with pytest.raises(TypeError, match="'words' must have numbers, got <U1"):
        write(path, "text", {}, {"words": np.array(["a"])})
    assert not path.exists()


@given(st.lists(st.text(st.characters()), max_size=5))
def test_texts_come_back(texts: list[str]) -> None:
    assert unpack_texts(pack_texts(texts), len(texts)) == texts


def test_texts_that_lie_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    array = pack_texts(["a", "bc", "\ud800"])
    assert unpack_texts(array, 3) == ["a", "bc", "\ud800"]
    for wrong, n in ((array, 2), (array, 4), (array, HUGE), (array[:-1], 3), (array[:5], 3), (array.astype("i4"), 3)):
        with pytest.raises(ValueError, match="texts"):
            unpack_texts(wrong, n)
    with pytest.raises(ValueError, match="utf-8"):
        unpack_texts(np.array([1, 0, 0, 0, 255], dtype=np.uint8), 1)
    monkeypatch.setattr(container, "MAX_TEXTS", 3)
    with pytest.raises(ValueError, match="texts take 4 bytes in a file, at most 3 are possible"):
        pack_texts(["a", "bcd"])


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


def test_every_truncation_and_anything_added_is_refused(path: Path) -> None:
    Graph.from_edges([0, 1, 2, 3, 0], [4, 4, 4, 4, 1], [1, 1, 2, 3, 0.5], n_items=4).save(path)
    data = path.read_bytes()
    for length in range(len(data)):
        assert is_refused(path, data[:length])
        assert is_refused(path, data[length + 1 :])
    for extra in (b"\0", b"\n", data):
        refused(path, data + extra)
    refused(path, data[:-32] + bytes(8) + hashlib.sha256(data[:-32] + bytes(8)).digest(), "need 7 bytes .* room for 15")


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
    content = container.describe(path).content
    assert [content[key] for key in ("n_vertices", "n_items", "n_edges")] == [
        graph.n_vertices,
        graph.n_items,
        graph.n_edges,
    ]


@given(data=st.binary(max_size=200))
def test_noise_is_refused(directory: Path, data: bytes) -> None:
    refused(directory / "noise", data)
    refused(directory / "noise", b"\x89PRODIGE\1\0\0\0" + data)
    refused(directory / "noise", b"\x89PRODIGE\3\0\0\0" + data)


def test_messages_say_what_to_do(path: Path) -> None:
    header, body = parts()
    assert "upgrade prodige" in refused(
        path, assemble(header, body, version=8), "version 8 .* newest one known here is 7"
    )
    assert "restore a copy" in refused(path, assemble(header, body, version=0), "no version 0")
    assert "right file" in refused(path, assemble(header, body, magic=b"\x89PNG\r\n\x1a\n"), "does not start like one")
    assert "restore a copy" in refused(path, assemble(header, body)[:-1] + b"!", "checksum does not match")
    refused(path, b"", "does not start like one")
    refused(path, b"\x89PRODIGE", "ends too early, after 8 bytes")


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no kind": lambda h: h | {"kind": None},
    "a kind of tomorrow": lambda h: h | {"kind": "picture"},
    "a list of kinds": lambda h: h | {"kind": ["graph"]},
    "a list": lambda h: [h],
    "a number": lambda h: 3,
    "nothing": lambda h: {},
    "a key too few": lambda h: {key: h[key] for key in h if key != "metadata"},
    "a key too many": lambda h: h | {"code": "import os"},
    "no arrays": lambda h: h | {"arrays": []},
    "arrays of another kind": lambda h: h | {"arrays": {"i": 0}},
    "arrays that are none": lambda h: h | {"arrays": [1, 2, 3]},
    "an array twice": lambda h: h | {"arrays": [h["arrays"][0], h["arrays"][0], h["arrays"][2]]},
    "an array too many": lambda h: h | {"arrays": [*h["arrays"], entry("k", "int32", [3], 12)]},
    "an array too few": lambda h: h | {"arrays": h["arrays"][:2]},
    "many arrays": lambda h: h | {"arrays": [entry(str(k), "uint8", [2**40], 2**40) for k in range(1000)]},
    "content of another kind": lambda h: h | {"content": [3]},
    "no content": lambda h: h | {"content": None},
    "metadata of another kind": lambda h: h | {"metadata": ["Ada"]},
    "an infinity": lambda h: h | {"metadata": {"a": float("inf")}},
    "no number": lambda h: h | {"content": {"a": float("nan")}},
    "deep metadata": lambda h: h | {"metadata": {"a": json.loads("[" * 64 + "]" * 64)}},
    "no JSON": lambda h: b"n_edges = 3",
    "cut JSON": lambda h: json.dumps(h).encode()[:-1],
    "two JSON texts": lambda h: json.dumps(h).encode() * 2,
    "a key twice": lambda h: json.dumps(h).encode()[:-1] + b', "kind": "graph"}',
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
    refused_without_belief(path, data)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("length", value) for value in (0, -12, 11, 24, 12.0, HUGE, "12", True, None)],
        *[("dtype", value) for value in ("object", "O", ">i4", "<i4", "S4", "str", "<U500000000", ["int32"], None)],
        *[("dtype", value) for value in ("int64", "float16", "uint8")],
        *[("name", value) for value in ("", None, 3, ["i"], "a" * 65)],
        *[("codec", value) for value in ("zip", "", None, ["raw"])],
        *[("shape", value) for value in (3, None, [], [4], [2], [-3], [3.0], [True], ["3"], [3, 2], [HUGE], [0, HUGE])],
        *[("shape", value) for value in ([2**40, 2**40], [0, 2**40, 2**40], [1, 1, 1, 1, 3], [[3]], {"3": 3})],
        ("key", 1),
    ],
)
def test_arrays_that_lie_are_refused(path: Path, place: int, key: str, value: Any) -> None:
    header, body = parts()
    header["arrays"][place][key] = value
    refused(path, assemble(header, body), "header has an array|need .* bytes")


def test_header_length_is_not_believed(path: Path) -> None:
    for length in (2**32 - 1, 2**24 + 1, 2**24, 1000, 0):
        data = b"\x89PRODIGE" + struct.pack("<II", 3, length) + assemble(*parts())[16:-32]
        refused(path, data + hashlib.sha256(data).digest(), "header|ends too early")


# -- compressed arrays -----------------------------------------------------------------------------------------------


def deflated(text: bytes) -> bytes:
    """Return a header as independent writers would have it, without the dictionary."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(text) + packer.flush()


def test_headers_may_be_deflated(path: Path) -> None:
    header, body = parts()
    path.write_bytes(assemble(deflated(json.dumps(header).encode()), body, version=7))
    assert container.read(path).content == header["content"]
    assert container.describe(path).version == 7


def test_deflated_headers_that_lie_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, body = parts()
    sound = deflated(json.dumps(header).encode())
    refused(path, assemble(json.dumps(header).encode(), body, version=7), "cannot be inflated|does not end")
    refused(path, assemble(sound[:-3], body, version=7), "does not end where it should")
    refused(path, assemble(sound + b"!", body, version=7), "does not end where it should")
    refused(path, assemble(deflated(b"[]"), body, version=7), "not a JSON object")
    bomb = deflated(b" " * (2**24 + 1))
    tracemalloc.start()
    refused(path, assemble(bomb, body, version=7), "inflates to more than 16777216 bytes")
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


@given(data=st.binary(max_size=200))
def test_noise_for_a_deflated_header_is_refused(directory: Path, data: bytes) -> None:
    refused(directory / "noise", assemble(data, version=7))


def forged(n_bytes: int, stream: bytes) -> bytes:
    """Return a file with one compressed array that says to have so many bytes."""
    rows = [entry("codes", "uint8", [n_bytes], len(stream), "lzma")]
    return assemble({"kind": "text", "content": {}, "arrays": rows, "metadata": {}}, stream)


def test_an_honest_forgery(path: Path) -> None:
    """So that it is not the forger's mistakes which are refused below."""
    path.write_bytes(forged(7, compressed(bytes(7))))
    assert read(path).arrays["codes"].tolist() == [0] * 7


@pytest.mark.parametrize("n_bytes", [0, 6, 8, 100])
def test_streams_of_another_length_are_refused(path: Path, n_bytes: int) -> None:
    path.write_bytes(forged(n_bytes, compressed(bytes(7))))
    with pytest.raises(FileFormatError, match=f"'codes' should have {n_bytes} bytes, which it has not"):
        read(path)


@pytest.mark.parametrize("change", [b"", b"\x01", b"\0\0\0", bytes(7), compressed(bytes(7))[:-1], compressed(b"") * 2])
def test_streams_that_are_none_are_refused(path: Path, change: bytes) -> None:
    path.write_bytes(forged(7, change))
    with pytest.raises(FileFormatError, match="restore a copy"):
        read(path)


def test_what_follows_a_stream_is_refused(path: Path) -> None:
    for more in (b"\0", b"trailing", compressed(bytes(7))):
        path.write_bytes(forged(7, compressed(bytes(7)) + more))
        with pytest.raises(FileFormatError, match="which it has not"):
            read(path)


def test_sizes_are_looked_at_before_memory_is_set_aside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = compressed(bytes(2**20))
    monkeypatch.setattr(container, "decompressed", lambda *arguments: pytest.fail("it was unpacked"))
    for n_bytes in (2**20, 64 * len(stream) + 1, 2**40, HUGE):
        path.write_bytes(forged(n_bytes, stream))
        with pytest.raises(FileFormatError, match="its header has an array 'codes'"):
            read(path)


def test_a_stream_that_is_larger_than_it_says(path: Path) -> None:
    stream = compressed(bytes(2**26))
    assert len(stream) < 20_000
    path.write_bytes(forged(10, stream))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="should have 10 bytes"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_the_checksum_is_compared_before_arrays_are_unpacked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "unpack", lambda *arguments: pytest.fail("it was unpacked"))
    data = bytearray(forged(7, compressed(bytes(7))))
    data[-40] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(FileFormatError, match="checksum does not match"):
        read(path)


def test_truth_values_are_0_or_1(path: Path) -> None:
    rows = [entry("flags", "bool", [2], 2)]
    path.write_bytes(assemble({"kind": "text", "content": {}, "arrays": rows, "metadata": {}}, b"\1\2"))
    with pytest.raises(FileFormatError, match="truth values other than 0 and 1"):
        read(path)


# -- files -----------------------------------------------------------------------------------------------------------


def test_other_kinds_are_refused_by_name(path: Path) -> None:
    write(path, "compressor", {}, MODEL)
    with pytest.raises(FileFormatError, match=r"holds a compressor, not a graph; open it with prodige\.load or Dist"):
        Graph.load(path)


def test_a_graph_and_its_description_are_of_one_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, "text", {"which": "old"}, MODEL)
    write(path.with_name("new"), "text", {"which": "new"}, {})
    read_header = container.read_header

    def replace(reader: Any) -> Any:
        found = read_header(reader)
        if path.with_name("new").exists():
            os.replace(path.with_name("new"), path)
        return found

    monkeypatch.setattr(container, "read_header", replace)
    contents = read(path)
    assert contents.content == {"which": "old"}
    np.testing.assert_array_equal(contents.arrays["codes"], MODEL["codes"])
    assert container.describe(path).content == {"which": "new"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    errors: list[str] = []

    def run() -> None:
        for path in (pipe, tmp_path, os.devnull):
            for reader in (read, container.describe):
                try:
                    reader(path)
                except (FileFormatError, IsADirectoryError) as error:
                    errors.append(str(error))

    reader = threading.Thread(target=run, daemon=True)
    reader.start()
    reader.join(60)
    assert not reader.is_alive()
    assert ["a pipe or a device" in error for error in errors] == [True, True, False, False, True, True]
