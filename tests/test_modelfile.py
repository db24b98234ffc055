"""Model files: what is packed comes back, and nothing in a file is trusted."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from prodige import modelfile
from prodige.fileformat import FileFormatError
from prodige.modelfile import pack, read, unpack, write

MODEL: dict[str, Any] = {
    "codes": np.arange(300, dtype=np.uint8) % 7,
    "filters": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 12),
}
DATA = pack({"model": "test", "steps": [0.5, 1]}, MODEL)


@settings(max_examples=20, deadline=None)
@given(
    values=arrays_of.arrays(
        st.sampled_from([np.uint8, np.int8, np.int64, np.float32, np.bool_]),
        arrays_of.array_shapes(min_dims=0, min_side=0),
    ),
    description=st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
)
def test_round_trip(values: Any, description: dict[str, Any]) -> None:
    found, arrays = unpack(pack(description, {"values": values}))
    assert found == description
    assert arrays["values"].dtype == values.dtype
    np.testing.assert_array_equal(arrays["values"], values)


def test_the_same_model_has_the_same_bytes() -> None:
    assert pack({"b": 1, "a": 2}, MODEL) == pack({"a": 2, "b": 1}, MODEL)


def test_what_json_or_numpy_would_hide_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        pack({"step": float("nan")}, {})
    with pytest.raises(ValueError, match="allow_pickle"):
        pack({}, {"objects": np.array([{}], dtype=object)})


@settings(max_examples=50, deadline=None)
@given(place=st.integers(0, len(DATA) - 1), change=st.integers(1, 255))
def test_a_damaged_byte_is_found_or_harmless(place: int, change: int) -> None:
    damaged = bytearray(DATA)
    damaged[place] ^= change
    try:
        description, arrays = unpack(bytes(damaged))
    except FileFormatError:
        return
    # A byte of dates or attributes, which nobody reads; names are what the caller looks for.
    assert description == {"model": "test", "steps": [0.5, 1]}
    for name in set(arrays) & set(MODEL):
        np.testing.assert_array_equal(arrays[name], MODEL[name])


@settings(max_examples=50, deadline=None)
@given(length=st.integers(0, len(DATA) - 1))
def test_a_cut_file_is_refused(length: int) -> None:
    with pytest.raises(FileFormatError, match="damaged or no model"):
        unpack(DATA[:length])


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(FileFormatError, match="damaged or no model"):
        unpack(data)


def archive_of(entries: dict[str, bytes], method: int = zipfile.ZIP_LZMA) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"codes.npy": b""},
        {"model.json": b"[1]"},
        {"model.json": b"{"},
        {"model.json": b"\xff"},
        {"model.json": b"[" * 100_000},
        {"model.json": b"{}", "codes.npy": b"plain text"},
        {
            "model.json": b"{}",
            "codes.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"\x80\x04N."),
        },
        {"model.json": b"{}", "codes.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", b"1234")},
        {"model.json": b"{}", "codes.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", b"1234")},
        {"model.json": b"{}", "codes.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}" + " " * 9)},
        {"model.json": b"{}", "codes.npy": npy("__import__('os').abort()")},
    ],
)
def test_archives_of_something_else_are_refused(entries: dict[str, bytes]) -> None:
    with pytest.raises(FileFormatError, match="damaged or no model"):
        unpack(archive_of(entries))


def test_an_array_larger_than_its_entry_takes_no_memory() -> None:
    """The header asks for a terabyte; nothing is set aside for it."""
    bomb = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}", b"x")
    with pytest.raises(FileFormatError, match=r"codes.npy .* 1099511627776"):
        unpack(archive_of({"model.json": b"{}", "codes.npy": bomb}))


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelfile, "_MOST", 10_000)
    bomb = archive_of({"model.json": b"{}", "codes.npy": bytes(20_000)})
    assert len(bomb) < 1_000
    monkeypatch.setattr(modelfile, "read_entry", lambda *arguments: pytest.fail("it was unpacked"))
    with pytest.raises(FileFormatError, match="unpacks to 20002 bytes, more than a model can have"):
        unpack(bomb)


def test_an_entry_that_is_larger_than_it_says() -> None:
    """Sizes stand in the directory at the end; one that lies is found, at no more than what it says."""
    content = json.dumps({"a": "x" * 50_000}).encode()
    honest = archive_of({"model.json": content}, zipfile.ZIP_STORED)
    lying = honest.replace(len(content).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(FileFormatError):
        unpack(lying)


def test_files_are_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    write(path, DATA)
    description, arrays = read(str(path))
    assert description["model"] == "test"
    assert set(arrays) == set(MODEL)

    with pytest.raises(TypeError):
        write(path, None)  # type: ignore[arg-type] # fails half-way
    assert path.read_bytes() == DATA
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.prodige"]
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "no such file")
