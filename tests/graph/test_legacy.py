"""Files of versions 1 and 2 are read for ever, with the suspicion of their time."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from files import (
    NO_GRAPH,
    assemble,
    is_refused,
    old_packed_parts,
    old_parts,
    old_sections,
    refused,
    refused_without_belief,
)
from prodige import Graph
from prodige.graph import container
from prodige.graph.legacy import packed_sections, packing_of

HUGE = 2**62


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


def test_assembled_parts_are_sound(path: Path) -> None:
    path.write_bytes(assemble(*old_parts(), version=1))
    assert Graph.load(path) == Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 3])


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


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "more vertices than ids": lambda h: h | {"n_vertices": 2**31 - 1},
    "absurd vertices": lambda h: h | {"n_vertices": HUGE, "n_items": HUGE},
    "vertices nothing needs": lambda h: h | {"n_vertices": 2**31 - 2},
    "absurd edges": lambda h: h | {"n_edges": HUGE},
    "absurd edges with sections": lambda h: h | {"n_edges": 2**30 - 1, "sections": old_sections(2**30 - 1)},
    "more edges than there are": lambda h: h | {"n_edges": 4, "sections": old_sections(4)},
    "fewer edges than there are": lambda h: h | {"n_edges": 2, "sections": old_sections(2)},
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
    header, body = old_parts()
    data = assemble(HEADERS[attack](header), body, version=1)
    refused_without_belief(path, data)


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
    header, body = old_parts()
    header["sections"][section][key] = value
    refused(path, assemble(header, body, version=1), "sections other than i, j and weight of 3 edges")


def test_the_files_of_version_2_are_read_for_ever(path: Path) -> None:
    """Written by hand: a packed file must mean the same tomorrow."""
    path.write_bytes(assemble(*old_packed_parts(), version=2))
    assert Graph.load(path) == Graph.from_edges([0, 0, 1], [1, 2, 2], [1, 2, 4])
    description = container.describe(path)
    assert (description.kind, description.version, description.content["weight_bits"]) == ("graph", 2, 2)


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
    header, body = old_packed_parts()
    header["sections"][section][key] = value
    refused(path, assemble(header, body, version=2), "header has sections|need .* bytes")


@pytest.mark.parametrize("sections", [None, 3, [], [1, 2, 3], [{}, {}, {}], {"degree": 1}, "abc"])
def test_packed_sections_of_another_kind_are_refused(path: Path, sections: Any) -> None:
    header, body = old_packed_parts()
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
    header, _ = old_packed_parts()
    refused(path, assemble(header, bytes(body), version=2), match)


def test_ends_that_wrap_around_are_refused(path: Path) -> None:
    """In 32 bits an end of 2**32 + 1 would be 1."""
    header, _ = old_packed_parts()
    header["n_edges"], header["n_vertices"] = 1, 3
    header["sections"][1] |= {"bits": 31, "least": 3, "length": 4}
    header["sections"][2] |= {"offset": 5, "bits": 2, "length": 1}
    body = bytes([0b0001]) + struct.pack("<I", 2**31 - 1) + bytes([0])
    refused(path, assemble(header, body, version=2), "goes to 2147483650, and there are 3 vertices")


def test_headers_of_packed_files_are_not_believed(path: Path) -> None:
    header, body = old_packed_parts()
    for change in ({"n_edges": 2**30 - 1}, {"n_vertices": 2**31 - 2}, {"n_edges": 4}, {"n_vertices": 11}):
        lie = header | change
        table = packed_sections(packing_of(lie["sections"], lie["n_vertices"], lie["n_edges"]))
        refused(path, assemble(lie, body, version=2), "header")
        refused(path, assemble(lie | {"sections": table}, body, version=2), "need .* bytes|header|degrees")


def test_header_length_is_not_believed(path: Path) -> None:
    for length in (2**32 - 1, 2**24 + 1, 2**24, 1000, 0):
        data = b"\x89PRODIGE" + struct.pack("<II", 1, length) + assemble(*old_parts(), version=1)[16:-32]
        refused(path, data + hashlib.sha256(data).digest(), "header|ends too early")


@pytest.mark.parametrize(("values", "match"), NO_GRAPH)
def test_edges_that_no_graph_has_are_refused(path: Path, values: list[Any], match: str) -> None:
    header, _ = old_parts()
    refused(path, assemble(header, struct.pack("<6i3f", *values), version=1), match)


def test_what_is_not_known_of_old_files(path: Path) -> None:
    header, body = old_parts()
    path.write_bytes(assemble(header | {"metadata": {"made by": "Ada"}}, body, version=1))
    description = container.describe(path)
    assert description == (
        "graph",
        1,
        path.stat().st_size,
        {"n_vertices": 3, "n_items": 3, "n_edges": 3},
        {"made by": "Ada"},
    )
    refused(path, assemble(header, body), "header is not a JSON object with the keys arrays, content, kind, metadata")
    refused(path, assemble(header, body, version=2), "header has sections")


@pytest.mark.parametrize("beginning", [b"\x89PRODIGM", b"PK\x03\x04" + bytes(26) + b"model.json"])
def test_text_models_of_their_own_format_are_no_longer_read(path: Path, beginning: bytes) -> None:
    message = refused(path, beginning + bytes(50), "it is a text model of an earlier format, which is no longer read")
    assert message.endswith("fit the model and save it again")


def test_every_flipped_bit_of_old_files_is_refused(path: Path) -> None:
    for version, (header, body) in ((1, old_parts()), (2, old_packed_parts())):
        data = assemble(header, body, version=version)
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1 << position % 8
            assert is_refused(path, bytes(damaged)), f"byte {position}"
            assert is_refused(path, data[:position])
