r"""Files of earlier versions: their headers, as a header of today would say it.

Versions 1 and 2 held a graph; the header has ``n_vertices``, ``n_items``, ``n_edges``, ``metadata`` and ``sections``.
Sections are arrays with ``name``, ``offset`` (from the end of the header) and ``length``, and what each of the two had:

=======  =========================================================================================================
version  sections
=======  =========================================================================================================
1        ``i`` and ``j`` with ``dtype`` int32, ``weight`` with ``dtype`` float32
2        ``degree``, ``j`` and ``weight`` in the bits of today, with ``bits``, ``least`` and ``greatest`` beside them
=======  =========================================================================================================

A recommender was a graph of version 1 whose metadata said so.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from prodige.graph.header import Entry, Header, HeaderError, check_counts, parse
from prodige.graph.packing import Packing

EXACT, PACKED = 1, 2
COLUMNS = {"i": "int32", "j": "int32", "weight": "float32"}

# Text models had a format of their own: at first a zip archive, which begins with the head of an entry and its name.
START_OF_MODEL = 40
_MODEL_MAGIC = b"\x89PRODIGM"

# What the metadata of a recommender held.
_RECOMMENDER = "GraphRecommender"
_SETTINGS = ("n_users", "numbers_per_item", "edges", "user_labels", "item_labels")


def decode(text: bytes, version: int) -> Header:
    """Return what a header of version 1 or 2 says, in the words of today."""
    header = parse(text, ("metadata", "n_edges", "n_items", "n_vertices", "sections"))
    counts = {key: header[key] for key in ("n_vertices", "n_items", "n_edges")}
    n_vertices, _, n_edges = check_counts(counts)
    content: dict[str, Any] = counts
    names, table = "i, j and weight", sections(n_edges)
    entries = [Entry(name, dtype, (n_edges,), "raw", 4 * n_edges) for name, dtype in COLUMNS.items()]
    if version == PACKED:
        try:
            packing = packing_of(header["sections"], n_vertices, n_edges)
        except ValueError as error:
            raise HeaderError(f"has sections that make no sense: {error}") from None
        content = counts | packing.fields()
        names, table = "degree, j and weight", packed_sections(packing)
        entries = [Entry(name, "uint8", (length,), "raw", length) for name, length in packing.lengths().items()]
    # Compared as text: in Python, 0 == False == 0.0.
    if json.dumps(header["sections"], sort_keys=True) != json.dumps(table, sort_keys=True):
        raise HeaderError(f"has sections other than {names} of {n_edges} edges, one after the other")
    metadata = header["metadata"]
    if not isinstance(metadata, dict):
        raise HeaderError("has metadata that is not a JSON object")
    if metadata.get("model") == _RECOMMENDER:
        return Header("recommender", {"graph": content} | {key: metadata.get(key) for key in _SETTINGS}, entries, {})
    return Header("graph", content, entries, metadata)


def sections(n_edges: int) -> list[dict[str, Any]]:
    """Return the table of sections of a file of version 1."""
    table: list[dict[str, Any]] = []
    offset = 0
    for name, dtype in COLUMNS.items():
        length = n_edges * np.dtype(dtype).itemsize
        table.append({"name": name, "dtype": dtype, "offset": offset, "length": length})
        offset += length
    return table


def packed_sections(packing: Packing) -> list[dict[str, Any]]:
    """Return the table of sections of a file of version 2."""
    steps = packing.steps
    assert steps is not None  # it had no other weights
    fields: dict[str, dict[str, Any]] = {
        "degree": {"bits": 1},
        "j": {"bits": packing.j_bits, "least": packing.j_least},
        "weight": {"bits": steps.bits, "least": steps.least, "greatest": steps.greatest},
    }
    table: list[dict[str, Any]] = []
    offset = 0
    for name, length in packing.lengths().items():
        table.append({"name": name, **fields[name], "offset": offset, "length": length})
        offset += length
    return table


def packing_of(table: Any, n_vertices: int, n_edges: int) -> Packing:
    """Return how edges are packed in a file of version 2."""
    try:
        _, j, weight = table
        fields = {
            "j_bits": j["bits"],
            "j_least": j["least"],
            "weight_bits": weight["bits"],
            "least": weight["least"],
            "greatest": weight["greatest"],
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"a section lacks something ({error})") from None
    return Packing.from_fields(fields, n_vertices, n_vertices, n_edges)


def is_text_model(beginning: bytes) -> bool:
    r"""Whether a file that begins so is a text model of the time when they had a format of their own.

    Examples
    --------
    >>> from prodige.graph.legacy import is_text_model
    >>> is_text_model(b"\x89PRODIGM"), is_text_model(b"\x89PRODIGE")
    (True, False)
    """
    is_archive = beginning.startswith(b"PK\x03\x04") and beginning[30:START_OF_MODEL] == b"model.json"
    return is_archive or beginning.startswith(_MODEL_MAGIC)
