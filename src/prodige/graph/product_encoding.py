"""Encoding of products: a product of graphs as the content and the arrays of a file, and back.

:mod:`prodige.graph.container` has the layout. The header is kept small: of 10,000 items every 100 bytes are a twelfth
of a bit an item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige._validation import MAX_INT32
from prodige.graph import encoding
from prodige.graph.bipartite import BipartiteFactor
from prodige.graph.factors import MAX_HUBS, Factor, GeometricFactor, GraphFactor
from prodige.graph.graph import Graph
from prodige.graph.grid import MOST_BITS, Grid
from prodige.graph.header import count, shortened
from prodige.graph.packing import FLOAT_BITS, number_bits, pack_bits, packed_length, unpack_bits, whole
from prodige.graph.product import ProductGraph
from prodige.graph.product_parts import MAX_FACTORS, MAX_IDLE
from prodige.graph.reading import NewerError

KEYS = ("n_items", "n_vertices", "power", "gauge", "length_bits", "factors")
SIDED = "n_first"  # of products with bipartite factors: vertices of the first side, if they come first, else 0
GAUGE = "power"  # the only one so far
MAX_DIMENSIONS = 2**16
_GRID = np.dtype("<f4")  # of the two numbers in front of levels


def is_product(content: Any) -> bool:
    """Whether content is that of a product of graphs, and not of a graph."""
    return isinstance(content, dict) and "factors" in content


def encode(product: ProductGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a product as content and arrays.

    Examples
    --------
    >>> from prodige import ProductGraph
    >>> from prodige.graph import product_encoding
    >>> product = ProductGraph.from_factors([[[0.0], [1.0]]], [[0], [1], [1]], [0.0, 0.5, 0.25])
    >>> content, arrays = product_encoding.encode(product)
    >>> content["factors"], {name: array.size for name, array in arrays.items()}
    ([[2, 1, 32]], {'codes': 1, 'positions': 8, 'lengths': 12})
    """
    n_vertices, n_first = len(product._codes), product.n_first
    described: list[Any] = []
    positions: list[bytes] = []
    graphs: dict[str, NDArray[Any]] = {}
    for m, factor in enumerate(product.factors):
        if isinstance(factor, GeometricFactor):
            numbers = factor.positions if factor.grid is None else factor.grid
            described.append([factor.n_hubs, factor.n_dimensions, bits_of(numbers)])
            positions.append(pack_numbers(numbers))
        elif isinstance(factor, BipartiteFactor):
            sides = [
                words if grid is None else grid
                for words, grid in zip((factor.first, factor.second), factor.grids, strict=True)
            ]
            described.append([factor.n_first, factor.n_second, factor.n_dimensions, *map(bits_of, sides)])
            positions += map(pack_numbers, sides)
        else:
            content, arrays = encoding.encode(factor.graph)
            described.append(content)
            graphs |= {f"{m}.{name}": array for name, array in arrays.items()}
    content = {
        "n_items": product.n_items,
        "n_vertices": n_vertices,
        "power": product.power,
        "gauge": {"name": GAUGE, "exponent": product.gauge},
        "length_bits": bits_of(product._lengths),
        "factors": described,
    }
    if any(isinstance(factor, BipartiteFactor) for factor in product.factors):
        content[SIDED] = n_first
    parts = {
        "codes": pack_codes(product._codes, product.factors, n_first),
        "positions": b"".join(positions),
        "lengths": pack_numbers(without_first(product._lengths, n_first)),
    }
    if product._places is not None:
        parts["places"] = pack_places(product._places, n_vertices)
    return content, {name: np.frombuffer(data, np.uint8) for name, data in parts.items()} | graphs


def decode(content: Any, arrays: Mapping[str, NDArray[Any]]) -> ProductGraph:
    """Return the product of content and arrays, among which there may be others; ValueError if there is none."""
    if not isinstance(content, dict) or set(content) - {SIDED} != set(KEYS):
        raise ValueError(f"a product of graphs needs {', '.join(KEYS)}")
    n_items = count(content, "n_items", 1, MAX_INT32 - 1)
    n_vertices = count(content, "n_vertices", 1, n_items)
    gauge = decode_gauge(content["gauge"])
    length_bits = check_bits(content["length_bits"])
    factors = decode_factors(content["factors"], arrays)
    n_first = decode_first(content, factors, n_vertices)
    (lengths,) = split("lengths", arrays, [numbers_length(n_vertices - n_first, length_bits)])
    places = None
    if n_vertices < n_items:
        (data,) = split("places", arrays, [places_length(n_items, n_vertices)])
        places = unpack_places(data, n_items, n_vertices)
    return ProductGraph.from_factors(
        factors,
        unpack_codes(arrays, factors, n_vertices, n_first),
        with_first(unpack_numbers(lengths, (n_vertices - n_first,), length_bits), n_first),
        exponent(content["power"]),
        gauge,
        places,
    )


def array_names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arrays of a product whose content is sound."""
    names = ["codes", "positions", "lengths"]
    if content["n_vertices"] < content["n_items"]:
        names.append("places")
    for m, described in enumerate(content["factors"]):
        if isinstance(described, dict):
            names += [f"{m}.{name}" for name in encoding.array_names(described)]
    return tuple(names)


# -- factors ---------------------------------------------------------------------------------------------------------


def decode_factors(described: Any, arrays: Mapping[str, NDArray[Any]]) -> list[Factor]:
    """Return the factors of a product."""
    if not isinstance(described, list) or not 1 <= len(described) <= MAX_FACTORS:
        raise ValueError(f"factors should be a list of 1 to {MAX_FACTORS}, not {shortened(described)}")
    shapes = [shape for row in described if not isinstance(row, dict) for shape in check_shapes(row)]
    lengths = [numbers_length(n_hubs * n_dimensions, bits) for n_hubs, n_dimensions, bits in shapes]
    parts = split("positions", arrays, lengths)
    words = (
        unpack_numbers(data, (n_hubs, n_dimensions), bits)
        for (n_hubs, n_dimensions, bits), data in zip(shapes, parts, strict=True)
    )
    factors: list[Factor] = []
    for m, row in enumerate(described):
        if isinstance(row, dict):
            factors.append(GraphFactor(decode_graph(m, row, arrays)))
        elif len(row) == 3:
            factors.append(GeometricFactor(next(words)))
        else:
            factors.append(BipartiteFactor(next(words), next(words)))
    return factors


def decode_graph(m: int, content: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Graph:
    """Return the graph that is factor ``m``."""
    return encoding.decode(content, {name: arrays[f"{m}.{name}"] for name in encoding.array_names(content)})


def check_shapes(row: Any) -> list[tuple[int, int, int]]:
    """Return the numbers of hubs, coordinates and bits of a geometric factor, or of both sides of a bipartite one."""
    if not isinstance(row, list) or len(row) not in (3, 5):
        raise ValueError(f"a factor should be three numbers, five or a graph, not {shortened(row)}")
    *n_hubs, n_dimensions = row[: -(len(row) // 2)]
    bits = row[-(len(row) // 2) :]
    return [
        (whole(hubs, 1, MAX_HUBS), whole(n_dimensions, 1, MAX_DIMENSIONS), check_bits(each))
        for hubs, each in zip(n_hubs, bits, strict=True)
    ]


def decode_gauge(gauge: Any) -> float:
    """Return the exponent of the gauge; one that is not known here is from the future."""
    if not isinstance(gauge, dict) or not isinstance(gauge.get("name"), str):
        raise ValueError(f"a gauge should have a name, not {shortened(gauge)}")
    if gauge["name"] != GAUGE:
        raise NewerError(f"its gauge, {shortened(gauge['name'])}, is unknown to this version")
    if set(gauge) != {"name", "exponent"}:
        raise ValueError(f"a gauge {GAUGE!r} has an exponent and nothing else, not {shortened(gauge)}")
    return exponent(gauge["exponent"])


def exponent(value: Any) -> float:
    """Return an exponent of a header."""
    if type(value) is not float or not 1 <= value <= 2:
        raise ValueError(f"{shortened(value)} is not an exponent from 1 to 2")
    return value


# -- vertices of two sides --------------------------------------------------------------------------------------------


def decode_first(content: Mapping[str, Any], factors: Sequence[Factor], n_vertices: int) -> int:
    """Return the vertices of the first side, which a product has exactly where it has bipartite factors."""
    kinds = {isinstance(factor, BipartiteFactor) for factor in factors}
    if (SIDED in content) != (True in kinds):
        raise ValueError(f"{SIDED} belongs to products with factors of two sides")
    n_first = count(content, SIDED, 0, n_vertices - 1) if SIDED in content else 0
    if n_first and kinds != {True}:
        raise ValueError(f"{SIDED} = {n_first}, and not all factors have two sides")
    if n_first:
        check_idle([factor for factor in factors if isinstance(factor, BipartiteFactor)], n_first, n_vertices)
    return n_first


def check_idle(factors: Sequence[BipartiteFactor], n_first: int, n_vertices: int) -> None:
    """Refuse codes without bits, which take no room in a file but some in memory."""
    idle = sum(factor.n_first == 1 for factor in factors), sum(factor.n_second == 1 for factor in factors)
    if idle[0] == len(factors) or idle[0] * n_first + idle[1] * (n_vertices - n_first) > MAX_IDLE:
        raise ValueError(
            f"{idle[0]} and {idle[1]} of {len(factors)} factors have one hub of a side, which says nothing"
        )


def code_lengths(factors: Sequence[Factor], n_vertices: int, n_first: int) -> list[tuple[int, int, int]]:
    """Return the parts of codes: how many there are, how many bits they have, and the hub that is their 0."""
    shapes = []
    for factor in factors:
        if n_first and isinstance(factor, BipartiteFactor):
            shapes.append((n_first, number_bits(factor.n_first), 0))
            shapes.append((n_vertices - n_first, number_bits(factor.n_second), factor.n_first))
        else:
            shapes.append((n_vertices, number_bits(factor.n_hubs), 0))
    return shapes


def pack_codes(codes: NDArray[np.int32], factors: Sequence[Factor], n_first: int) -> bytes:
    """Return the codes of all vertices, factor by factor, and within a factor side by side."""
    columns = [part for column in codes.T for part in ((column[:n_first], column[n_first:]) if n_first else (column,))]
    shapes = code_lengths(factors, len(codes), n_first)
    return b"".join(pack_bits(part - zero, bits) for part, (_, bits, zero) in zip(columns, shapes, strict=True))


def unpack_codes(
    arrays: Mapping[str, NDArray[Any]], factors: Sequence[Factor], n_vertices: int, n_first: int
) -> NDArray[np.int64]:
    """Return what :func:`pack_codes` packed."""
    shapes = code_lengths(factors, n_vertices, n_first)
    data = split("codes", arrays, [packed_length(n, bits) for n, bits, _ in shapes])
    parts = [zero + unpack_bits(part, bits, n) for part, (n, bits, zero) in zip(data, shapes, strict=True)]
    if n_first:
        for first, factor in zip(parts[::2], factors, strict=True):
            if isinstance(factor, BipartiteFactor) and first.max() >= factor.n_first:
                raise ValueError(f"codes of the first side go up to {first.max()}, past its {factor.n_first} hubs")
        parts = [np.concatenate(pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return np.stack(parts, axis=1)


def without_first(lengths: NDArray[np.float32] | Grid, n_first: int) -> NDArray[np.float32] | Grid:
    """Return the lengths of vertices of the second side."""
    if isinstance(lengths, Grid):
        return Grid(lengths.levels[n_first:], lengths.bits, lengths.least, lengths.step)
    return lengths[n_first:]


def with_first(lengths: NDArray[np.float32] | Grid, n_first: int) -> NDArray[np.float32] | Grid:
    """Return what :func:`without_first` took apart: vertices of the first side have no length."""
    if not n_first:
        return lengths
    if not isinstance(lengths, Grid):
        return np.concatenate([np.zeros(n_first, np.float32), lengths])
    if lengths.least != 0:
        raise ValueError(f"lengths begin at {lengths.least}, and those of the first side are 0")
    return Grid(np.concatenate([np.zeros(n_first, np.uint16), lengths.levels]), lengths.bits, 0.0, lengths.step)


# -- numbers in few bits ---------------------------------------------------------------------------------------------


def place_bits(n_vertices: int) -> int:
    """Return the bits of a place: one at least, so that a file has no more items than bits."""
    return max(1, number_bits(n_vertices))


def copies_length(n_items: int, n_vertices: int) -> int:
    """Return the bytes of the numbers of all items that share the vertex of an earlier one, and of their vertices."""
    n_copies = n_items - n_vertices
    return packed_length(n_copies, number_bits(n_items)) + packed_length(n_copies, place_bits(n_vertices))


def places_length(n_items: int, n_vertices: int) -> int:
    """Return the bytes of all places: a list of those of copies where there are few, else of all items."""
    return min(copies_length(n_items, n_vertices), packed_length(n_items, place_bits(n_vertices)))


def pack_places(places: NDArray[np.int32], n_vertices: int) -> bytes:
    """Return the places of items, whose vertices are numbered in the order of their first items."""
    bits = place_bits(n_vertices)
    if packed_length(places.size, bits) <= copies_length(places.size, n_vertices):
        return pack_bits(places, bits)
    first = np.unique(places, return_index=True)[1]
    copies = np.setdiff1d(np.arange(places.size), first)
    return pack_bits(copies, number_bits(places.size)) + pack_bits(places[copies], bits)


def unpack_places(data: NDArray[np.uint8], n_items: int, n_vertices: int) -> NDArray[np.int64]:
    """Return what :func:`pack_places` packed."""
    bits, n_copies = place_bits(n_vertices), n_items - n_vertices
    if packed_length(n_items, bits) <= copies_length(n_items, n_vertices):
        return unpack_bits(data, bits, n_items)
    end = packed_length(n_copies, number_bits(n_items))
    copies = unpack_bits(data[:end], number_bits(n_items), n_copies)
    if not (copies[1:] > copies[:-1]).all() or copies[-1] >= n_items:
        raise ValueError(f"copies are not in order, or not among {n_items} items")
    places = np.zeros(n_items, dtype=np.int64)
    places[np.setdiff1d(np.arange(n_items), copies)] = np.arange(n_vertices)
    places[copies] = unpack_bits(data[end:], bits, n_copies)
    return places


def check_bits(bits: Any) -> int:
    """Return the bits of numbers: those of a grid's levels, or of float32."""
    return FLOAT_BITS if type(bits) is int and bits == FLOAT_BITS else whole(bits, 1, MOST_BITS)


def bits_of(numbers: NDArray[np.float32] | Grid) -> int:
    """Return the bits that each number takes."""
    return numbers.bits if isinstance(numbers, Grid) else FLOAT_BITS


def pack_numbers(numbers: NDArray[np.float32] | Grid) -> bytes:
    """Return numbers as they are, or those of a grid as least, step and levels."""
    if not isinstance(numbers, Grid):
        return numbers.astype(_GRID).tobytes()
    ends = np.array([numbers.least, numbers.step], dtype=_GRID)
    return ends.tobytes() + pack_bits(numbers.levels.ravel(), numbers.bits)


def unpack_numbers(data: NDArray[np.uint8], shape: tuple[int, ...], bits: int) -> NDArray[np.float32] | Grid:
    """Return what :func:`pack_numbers` packed."""
    if bits == FLOAT_BITS:
        return data.view(_GRID).astype(np.float32).reshape(shape)
    least, step = data[: 2 * _GRID.itemsize].view(_GRID).tolist()
    levels = unpack_bits(data[2 * _GRID.itemsize :], bits, int(np.prod(shape)))
    return Grid(levels.reshape(shape), bits, least, step)


def numbers_length(size: int, bits: int) -> int:
    """Return the bytes that so many numbers take."""
    return packed_length(size, bits) + (0 if bits == FLOAT_BITS else 2 * _GRID.itemsize)


def split(name: str, arrays: Mapping[str, NDArray[Any]], lengths: Sequence[int]) -> list[NDArray[np.uint8]]:
    """Return the parts of an array, which has as many bytes as they have together."""
    encoding.check_array(name, arrays[name], "uint8", sum(lengths))
    return np.split(arrays[name], np.cumsum(lengths)[:-1]) if lengths else []
