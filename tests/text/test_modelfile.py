"""Model files: what is packed comes back, and nothing in a file is trusted."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from prodige import Graph
from prodige.graph.fileformat import FileFormatError
from prodige.text import modelfile
from prodige.text.modelfile import START, is_model, pack, read, unpack, write

MODEL: dict[str, Any] = {
    "codes": np.arange(300, dtype=np.uint8) % 7,
    "filters": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 12),
}
KINDS = {"codes": ("u1", 1), "filters": ("f4", 2)}
DATA = pack({"model": "test", "steps": [0.5, 1]}, MODEL)


@settings(max_examples=30, deadline=None)
@given(
    values=arrays_of.arrays(
        st.sampled_from([np.dtype(kind) for kind in ("u1", "i1", "i8", "f4", "b1", ">i4")]),
        arrays_of.array_shapes(min_dims=0, min_side=0),
    ),
    description=st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
)
def test_round_trip(values: Any, description: dict[str, Any]) -> None:
    kind = values.dtype.str[1:]
    found, arrays = unpack(pack(description, {"values": values}), {"values": (kind, values.ndim)})
    assert found == description
    assert arrays["values"].dtype == np.dtype(kind)
    np.testing.assert_array_equal(arrays["values"], values)


def test_the_same_model_has_the_same_bytes() -> None:
    assert pack({"b": 1, "a": 2}, MODEL) == pack({"a": 2, "b": 1}, MODEL)


def test_what_a_file_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"step": float("nan")}, {})
    with pytest.raises(TypeError, match="'objects' must have numbers, got object"):
        pack({}, {"objects": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match=r"take 4194[0-9]* bytes, a file has room for 4194304; give shorter labels"):
        pack({"labels": "x" * 2**22}, {})


# -- damage ----------------------------------------------------------------------------------------------------------


def test_every_damaged_byte_is_found() -> None:
    for place in range(len(DATA)):
        for change in (1, 255):
            damaged = bytearray(DATA)
            damaged[place] ^= change
            with pytest.raises(FileFormatError, match=r"save it again|this prodige reads 2|Graph\.load"):
                unpack(bytes(damaged), KINDS)


def test_every_cut_is_found_and_what_is_put_at_the_end() -> None:
    for length in range(len(DATA)):
        with pytest.raises(FileFormatError, match="damaged or no model"):
            unpack(DATA[:length], KINDS)
    for more in (b"\0", b"trailing", DATA):
        with pytest.raises(FileFormatError, match="checksum"):
            unpack(DATA + more, KINDS)


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(FileFormatError):
        unpack(data, KINDS)


# -- files that were made to do harm ---------------------------------------------------------------------------------


def forged(table: Any, *entries: bytes) -> bytes:
    """A file with a checksum that fits, whatever else is in it."""
    head = table if isinstance(table, bytes) else json.dumps(table).encode()
    data = START.pack(modelfile.MAGIC, modelfile.VERSION, len(head)) + head + b"".join(entries)
    return data + hashlib.sha256(data).digest()


def packed(content: bytes) -> bytes:
    return lzma.compress(content, lzma.FORMAT_RAW, filters=modelfile._FILTERS)


JSON, CODES = packed(b"{}"), packed(bytes(7))
HEAD = ["", "u1", [2], len(JSON)]


def test_an_honest_forgery() -> None:
    """So that it is not the forger's mistakes which are refused below."""
    description, arrays = unpack(forged([HEAD, ["codes", "u1", [7], len(CODES)]], JSON, CODES), {"codes": ("u1", 1)})
    assert description == {}
    assert arrays["codes"].tolist() == [0] * 7


@pytest.mark.parametrize(
    "table",
    [
        [],
        {},
        3,
        b"[",
        b"\xff\xff",
        b"[" * 60_000,
        b"[" * 70_000,
        [HEAD],
        [HEAD, HEAD],
        [["codes", "u1", [7], len(CODES)], HEAD],
        [HEAD, ["codes", "u1", [7], len(CODES)], ["codes", "u1", [7], 0]],
        [HEAD, ["codes", "u1", [7], len(CODES)], ["more", "u1", [7], 0]],
        [HEAD, ["other", "u1", [7], len(CODES)]],
        [HEAD, ["codes", "u1", [7]]],
        [HEAD, {"codes": 1}],
        [HEAD, [["codes"], "u1", [7], len(CODES)]],
        [HEAD, ["codes", "|O", [7], len(CODES)]],
        [HEAD, ["codes", "<U500000000", [7], len(CODES)]],
        [HEAD, ["codes", "f4", [7], len(CODES)]],
        [HEAD, ["codes", ["u1"], [7], len(CODES)]],
        [HEAD, ["codes", "u1", 7, len(CODES)]],
        [HEAD, ["codes", "u1", [7, 1], len(CODES)]],
        [HEAD, ["codes", "u1", [6], len(CODES)]],
        [HEAD, ["codes", "u1", [8], len(CODES)]],
        [HEAD, ["codes", "u1", [-7], len(CODES)]],
        [HEAD, ["codes", "u1", [7.0], len(CODES)]],
        [HEAD, ["codes", "u1", [True], len(CODES)]],
        [HEAD, ["codes", "u1", ["7"], len(CODES)]],
        [HEAD, ["codes", "u1", [7], len(CODES) - 1]],
        [HEAD, ["codes", "u1", [7], len(CODES) + 1]],
        [HEAD, ["codes", "u1", [7], -1]],
        [["", "u1", [3], len(JSON)], ["codes", "u1", [7], len(CODES)]],
        [["", "u1", [2**40], len(JSON)], ["codes", "u1", [7], len(CODES)]],
    ],
    ids=lambda table: str(table)[:60],
)
def test_tables_that_lie_are_refused(table: Any) -> None:
    with pytest.raises(FileFormatError, match="damaged or no model"):
        unpack(forged(table, JSON, CODES), {"codes": ("u1", 1)})


@pytest.mark.parametrize(
    "description",
    [b"[1]", b"{", b"\xff", b"[" * 100_000, b'{"a": NaN}', b'{"a": ' + b"9" * 5000 + b"}", b""],
    ids=lambda description: str(description[:10]),
)
def test_descriptions_that_are_none(description: bytes) -> None:
    entry = packed(description)
    with pytest.raises(FileFormatError, match="damaged or no model"):
        unpack(forged([["", "u1", [len(description)], len(entry)]], entry), {})


def test_sizes_are_looked_at_before_memory_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelfile, "decompress", lambda *arguments: pytest.fail("it was unpacked"))
    for shape in ([2**31 - 1, 2**31 - 1], [2**31 - 1, 1], [2**27, 1]):
        bomb = forged([HEAD, ["codes", "u1", shape, len(CODES)]], JSON, CODES)
        with pytest.raises(FileFormatError, match=f"unpacks to {shape[0] * shape[1] + 2} bytes, more than a file of"):
            unpack(bomb, {"codes": ("u1", 2)})
    with pytest.raises(FileFormatError, match="more than a file of"):
        unpack(forged([["", "u1", [2**23], len(JSON)]], JSON), {})


def test_an_entry_that_is_larger_than_it_says() -> None:
    bomb = packed(bytes(2**26))
    assert len(bomb) < 20_000
    with pytest.raises(FileFormatError, match="should have 10 bytes"):
        unpack(forged([HEAD, ["codes", "u1", [10], len(bomb)]], JSON, bomb), {"codes": ("u1", 1)})


# -- files -----------------------------------------------------------------------------------------------------------


def test_files_are_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    write(path, DATA)
    assert read(str(path)) == DATA
    with pytest.raises(TypeError):
        write(path, None)  # type: ignore[arg-type] # fails half-way
    assert path.read_bytes() == DATA
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.prodige"]
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "no such file")


def test_other_kinds_of_files(tmp_path: Path) -> None:
    graph, archive, later = (tmp_path / name for name in ("graph.prodige", "old.prodige", "later.prodige"))
    Graph.from_edges([0], [1], [1.0]).save(graph)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.json", "{}")
    later.write_bytes(START.pack(modelfile.MAGIC, 3, 0))
    for path, message in (
        (graph, "it holds a graph, not a text model; read it with Graph.load"),
        (archive, "as earlier versions saved them, are no longer read; fit and save it again"),
        (later, "it has version 3 of the format, this prodige reads 2"),
    ):
        with pytest.raises(FileFormatError, match=message):
            read(path)
    assert [is_model(path) for path in (graph, archive, later, tmp_path)] == [False, False, True, False]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    errors: list[str] = []

    def run() -> None:
        for path in (pipe, tmp_path, os.devnull):
            try:
                read(path)
            except FileFormatError as error:
                errors.append(str(error).partition("file: ")[2])
            assert not is_model(path)

    reader = threading.Thread(target=run, daemon=True)
    reader.start()
    reader.join(60)
    assert not reader.is_alive()
    assert errors == [
        "it is a pipe or a device; give the name of a file",
        "it is a directory; give the name of a file",
        "it is a pipe or a device; give the name of a file",
    ]
