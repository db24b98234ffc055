"""Encoding of products: a product of graphs as the content and the arrays of a file, and back.

:mod:`prodige.graph.container` has the layout. The header is kept small: of 10,000 items every 100 bytes are a twelfth
of a bit an item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
from prodige.graph.rows import MOST_KINDS, pack_rows, unpack_rows

KEYS = ("n_items", "n_vertices", "power", "gauge", "length_bits", "factors")
SIDED = "n_first"  # of products with bipartite factors: vertices of the first side, if they come first, else 0
CODED = "n_kinds"  # of products whose codes and levels of lengths are coded as rows: kinds of these
LEAST_CODED = 256  # vertices: of fewer there is little to learn
EVEN = 0  # bits of positions that are all levels of a grid, one after the other
GAUGE = "power"  # lengths add to the sum whose root is the distance
PENDANT = "pendant"  # lengths add to that root
MAX_DIMENSIONS = 2**16
_GRID = np.dtype("<f4")  # of the two numbers in front of levels

Shape: TypeAlias = tuple[int, int, int]  # hubs, coordinates, bits


def is_product(content: Any) -> bool:
    """Whether content is that of a product of graphs, and not of a graph."""
    return isinstance(content, dict) and "factors" in content


def encode(product: ProductGraph, coded: bool = True) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a product as content and arrays.

    Codes are coded as rows where that is smaller; with ``coded`` False they have the bits of their factors in any case.

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
            positions.append(pack_positions(factor, even=False))
        elif isinstance(factor, BipartiteFactor):
            words = words_of(factor)
            described.append([factor.n_first, factor.n_second, factor.n_dimensions, *map(bits_of, words)])
            positions.append(pack_positions(factor, even=False))
        else:
            content, arrays = encoding.encode(factor.graph)
            described.append(content)
            graphs |= {f"{m}.{name}": array for name, array in arrays.items()}
    content = {
        "n_items": product.n_items,
        "n_vertices": n_vertices,
        "power": product.power,
        "gauge": {"name": PENDANT if product.pendant else GAUGE, "exponent": product.gauge},
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
    may_code = coded and n_vertices >= LEAST_CODED and content.get(SIDED) != 0
    if may_code and (found := code_rows(product)) is not None:
        kinds, coded_parts = found
        if sum(map(len, coded_parts)) < sum(map(len, parts.values())):
            even = [describe(row, factor) for row, factor in zip(described, product.factors, strict=True)]
            content |= {CODED: kinds, "factors": joined(even)}
            # One array: what the header says of another takes a bit for each of a few hundred items.
            parts = {"codes": b"".join(coded_parts)}
    if product._places is not None:
        parts["places"] = pack_places(product._places, n_vertices)
    return content, {name: np.frombuffer(data, np.uint8) for name, data in parts.items()} | graphs


def decode(content: Any, arrays: Mapping[str, NDArray[Any]]) -> ProductGraph:
    """Return the product of content and arrays, among which there may be others; ValueError if there is none."""
    if not isinstance(content, dict) or set(content) - {SIDED, CODED} != set(KEYS):
        raise ValueError(f"a product of graphs needs {', '.join(KEYS)}")
    n_items = count(content, "n_items", 1, MAX_INT32 - 1)
    n_vertices = count(content, "n_vertices", 1, n_items)
    gauge, pendant = decode_gauge(content["gauge"])
    length_bits = check_bits(content["length_bits"])
    described = content["factors"]
    n_first = count(content, SIDED, 0, n_vertices - 1) if SIDED in content else 0
    if CODED in content:
        described = parted(described)
        arrays = {**arrays, **split_coded(arrays, described, n_vertices - n_first, length_bits)}
    factors = decode_factors(described, arrays, EVEN if CODED in content else 1)
    check_first(content, factors, n_vertices, n_first)
    codes: NDArray[Any]
    lengths: NDArray[np.float32] | Grid
    if CODED in content:
        codes, lengths = decode_rows(content[CODED], arrays, factors, n_vertices, n_first, length_bits)
    else:
        (data,) = split("lengths", arrays, [numbers_length(n_vertices - n_first, length_bits)])
        lengths = unpack_numbers(data, (n_vertices - n_first,), length_bits)
        codes = unpack_codes(arrays, factors, n_vertices, n_first)
    places = None
    if n_vertices < n_items:
        (data,) = split("places", arrays, [places_length(n_items, n_vertices)])
        places = unpack_places(data, n_items, n_vertices)
    return ProductGraph.from_factors(
        factors,
        codes,
        with_first(lengths, n_first),
        exponent(content["power"]),
        gauge,
        places,
        pendant,
    )


def array_names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arrays of a product whose content is sound."""
    names = ["codes"] if CODED in content else ["codes", "positions", "lengths"]
    if content["n_vertices"] < content["n_items"]:
        names.append("places")
    for m, described in enumerate(content["factors"]):
        if isinstance(described, dict):
            names += [f"{m}.{name}" for name in encoding.array_names(described)]
    return tuple(names)


# -- factors ---------------------------------------------------------------------------------------------------------


def decode_factors(described: Any, arrays: Mapping[str, NDArray[Any]], least_bits: int = 1) -> list[Factor]:
    """Return the factors of a product; positions may be even where 0 bits are allowed."""
    if not isinstance(described, list) or not 1 <= len(described) <= MAX_FACTORS:
        raise ValueError(f"factors should be a list of 1 to {MAX_FACTORS}, not {shortened(described)}")
    shapes = [[] if isinstance(row, dict) else check_shapes(row, least_bits) for row in described]
    parts = split("positions", arrays, [positions_length(shape) for shape in shapes])
    factors: list[Factor] = []
    for m, (row, shape, data) in enumerate(zip(described, shapes, parts, strict=True)):
        if isinstance(row, dict):
            factors.append(GraphFactor(decode_graph(m, row, arrays)))
            continue
        words = unpack_positions(data, shape)
        factors.append(BipartiteFactor(*words) if len(words) > 1 else GeometricFactor(*words))
    return factors


def decode_graph(m: int, content: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Graph:
    """Return the graph that is factor ``m``."""
    return encoding.decode(content, {name: arrays[f"{m}.{name}"] for name in encoding.array_names(content)})


def check_shapes(row: Any, least_bits: int = 1) -> list[Shape]:
    """Return the numbers of hubs, coordinates and bits of a geometric factor, or of both sides of a bipartite one."""
    if not isinstance(row, list) or len(row) not in (3, 5):
        raise ValueError(f"a factor should be three numbers, five or a graph, not {shortened(row)}")
    *n_hubs, n_dimensions = row[: -(len(row) // 2)]
    bits = row[-(len(row) // 2) :]
    if least_bits == EVEN and bits == [EVEN] and n_dimensions == 1:
        return [(whole(n_hubs[0], 1, MAX_HUBS), 1, EVEN)]
    return [
        (whole(hubs, 1, MAX_HUBS), whole(n_dimensions, 1, MAX_DIMENSIONS), check_bits(each))
        for hubs, each in zip(n_hubs, bits, strict=True)
    ]


def decode_gauge(gauge: Any) -> tuple[float, bool]:
    """Return the exponent of the gauge, and whether lengths are pendant; a name not known here is from the future."""
    if not isinstance(gauge, dict) or not isinstance(gauge.get("name"), str):
        raise ValueError(f"a gauge should have a name, not {shortened(gauge)}")
    if gauge["name"] not in (GAUGE, PENDANT):
        raise NewerError(f"its gauge, {shortened(gauge['name'])}, is unknown to this version")
    if set(gauge) != {"name", "exponent"}:
        raise ValueError(f"a gauge {gauge['name']!r} has an exponent and nothing else, not {shortened(gauge)}")
    return exponent(gauge["exponent"]), gauge["name"] == PENDANT


def exponent(value: Any) -> float:
    """Return an exponent of a header."""
    if type(value) is not float or not 1 <= value <= 2:
        raise ValueError(f"{shortened(value)} is not an exponent from 1 to 2")
    return value


# -- rows ------------------------------------------------------------------------------------------------------------


def code_rows(product: ProductGraph) -> tuple[Any, list[bytes]] | None:
    """Return what a header says of rows, and positions, what lengths take beside their levels, and the rows."""
    positions = [pack_positions(factor, is_even(factor)) for factor in product.factors]
    n_first, lengths = product.n_first, without_first(product._lengths, product.n_first)
    sides = [product._codes[:n_first], product._codes[n_first:]] if n_first else [product._codes]
    sizes = side_sizes(product.factors, n_first)
    if n_first:
        sides[1] = sides[1] - sizes[0]
    if isinstance(lengths, Grid):
        sides[-1] = np.concatenate([sides[-1], lengths.levels[:, None].astype(np.int32)], axis=1)
        sizes[-1] = np.append(sizes[-1], np.int32(2**lengths.bits))
    found = [pack_rows(side.astype(np.uint16), size) for side, size in zip(sides, sizes, strict=True)]
    packed = [each for each in found if each is not None]
    if len(packed) < len(found):
        return None
    kinds, rows = zip(*packed, strict=True)
    ends = pack_ends(lengths) if isinstance(lengths, Grid) else pack_numbers(lengths)
    return [*kinds, len(rows[0])] if n_first else kinds[0], [*positions, ends, *rows]


def side_sizes(factors: Sequence[Factor], n_first: int) -> list[NDArray[np.int32]]:
    """Return the hubs of each factor, of either side where they are kept apart."""
    bipartite = [factor for factor in factors if isinstance(factor, BipartiteFactor)]
    if n_first:
        return [
            np.array([factor.n_first for factor in bipartite], np.int32),
            np.array([factor.n_second for factor in bipartite], np.int32),
        ]
    return [np.array([factor.n_hubs for factor in factors], np.int32)]


def words_of(factor: BipartiteFactor) -> list[NDArray[np.float32] | Grid]:
    """Return the words of both sides, on their grids where they have some."""
    both = zip((factor.first, factor.second), factor.grids, strict=True)
    return [words if grid is None else grid for words, grid in both]


def pack_positions(factor: Factor, even: bool) -> bytes:
    """Return the positions of a factor's hubs, or the ends of their grid where that says everything."""
    if isinstance(factor, BipartiteFactor):
        return b"".join(map(pack_numbers, words_of(factor)))
    if not isinstance(factor, GeometricFactor):
        return b""
    if factor.grid is None:
        return pack_numbers(factor.positions)
    return pack_ends(factor.grid) if even else pack_numbers(factor.grid)


def is_even(factor: Factor) -> bool:
    """Whether positions of a factor are all levels of a grid, one after the other: then only its ends are kept."""
    if not isinstance(factor, GeometricFactor) or factor.grid is None or factor.n_dimensions > 1:
        return False
    grid = factor.grid
    return grid.bits == even_bits(factor.n_hubs) and np.array_equal(grid.levels[:, 0], np.arange(factor.n_hubs))


def even_bits(n_hubs: int) -> int:
    """Return the bits of a grid that has so many levels."""
    return max(1, number_bits(n_hubs))


def describe(row: Any, factor: Factor) -> Any:
    """Return what a header with coded rows says of a factor: 0 bits where positions are even."""
    return [*row[:-1], EVEN] if is_even(factor) else row


def split_coded(
    arrays: Mapping[str, NDArray[Any]], described: Sequence[Any], n_lengths: int, length_bits: int
) -> dict[str, NDArray[np.uint8]]:
    """Return positions, lengths and rows, which are one array."""
    data = arrays["codes"]
    encoding.check_array("codes", data, "uint8", data.size)
    shapes = [check_shapes(row, EVEN) for row in described if not isinstance(row, dict)]
    first = sum(map(positions_length, shapes))
    last = first + (2 * _GRID.itemsize if length_bits != FLOAT_BITS else numbers_length(n_lengths, length_bits))
    if data.size < last:
        raise ValueError(f"codes should have {last} bytes and rows after them, not {data.size}")
    positions, lengths, rows = np.split(data, [first, last])
    return {"positions": positions, "lengths": lengths, "codes": rows}


def decode_rows(
    kinds: Any,
    arrays: Mapping[str, NDArray[Any]],
    factors: Sequence[Factor],
    n_vertices: int,
    n_first: int,
    length_bits: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32] | Grid]:
    """Return codes and lengths, as :func:`code_rows` coded them."""
    data, ends = arrays["codes"].tobytes(), arrays["lengths"]
    on_grid = length_bits != FLOAT_BITS
    sizes = side_sizes(factors, n_first)
    if on_grid:
        sizes[-1] = np.append(sizes[-1], np.int32(2**length_bits))
    if not n_first:
        rows = unpack_rows(data, n_vertices, sizes[0], whole(kinds, 1, MOST_KINDS))
        codes = rows[:, : len(factors)].astype(np.int64)
    else:
        if not isinstance(kinds, list) or len(kinds) != 3:
            raise ValueError(f"{CODED} of two sides should be three numbers, not {shortened(kinds)}")
        n_bytes = whole(kinds[2], 0, len(data))
        first = unpack_rows(data[:n_bytes], n_first, sizes[0], whole(kinds[0], 1, MOST_KINDS))
        rows = unpack_rows(data[n_bytes:], n_vertices - n_first, sizes[1], whole(kinds[1], 1, MOST_KINDS))
        codes = np.concatenate([first.astype(np.int64), rows[:, : len(factors)] + sizes[0].astype(np.int64)])
    if not on_grid:
        return codes, unpack_numbers(ends, (n_vertices - n_first,), length_bits)
    return codes, Grid(rows[:, -1], length_bits, *unpack_ends(ends))


def joined(described: Sequence[Any]) -> list[Any]:
    """Return the factors of a header with a list of hubs in place of a row for each where rows are alike beside.

    Examples
    --------
    >>> from prodige.graph.product_encoding import joined, parted
    >>> joined([[4, 1, 7], [3, 1, 7], [2, 2, 7]])
    [[[4, 3], 1, 7], [[2], 2, 7]]
    >>> parted(joined([[4, 1, 7], [3, 1, 7]]))
    [[4, 1, 7], [3, 1, 7]]
    >>> joined([[4, 2, 3, 5, 5], [3, 5, 3, 5, 5]])
    [[[4, 3], [2, 5], 3, 5, 5]]
    """
    rows: list[Any] = []
    for row in described:
        if isinstance(row, dict):
            rows.append(row)
            continue
        n_sides = len(row) // 2
        if not (rows and isinstance(rows[-1], list) and rows[-1][n_sides:] == row[n_sides:]):
            rows.append([*([] for _ in range(n_sides)), *row[n_sides:]])
        for hubs, n_hubs in zip(rows[-1][:n_sides], row[:n_sides], strict=True):
            hubs.append(n_hubs)
    return rows


def parted(rows: Any) -> list[Any]:
    """Return what :func:`joined` joined, a row for each factor."""
    described: list[Any] = []
    for row in rows if isinstance(rows, list) else [rows]:
        if isinstance(row, dict):
            described.append(row)
            continue
        n_sides = len(row) // 2 if isinstance(row, list) and len(row) in (3, 5) else 0
        lists: list[Any] = row[:n_sides] if n_sides else [None]
        if all(isinstance(hubs, list) and len(hubs) == len(lists[0]) for hubs in lists):
            described += [[*n_hubs, *row[n_sides:]] for n_hubs in zip(*lists, strict=True)]
        else:
            raise ValueError(
                f"factors should be a list of hubs with coordinates and bits, or graphs, not {shortened(row)}"
            )
    return described


# -- vertices of two sides --------------------------------------------------------------------------------------------


def check_first(content: Mapping[str, Any], factors: Sequence[Factor], n_vertices: int, n_first: int) -> None:
    """Refuse sides that factors do not have: a product has them exactly where it has bipartite factors."""
    kinds = {isinstance(factor, BipartiteFactor) for factor in factors}
    if CODED in content and content.get(SIDED) == 0:
        raise ValueError(f"{CODED} belongs to products whose sides are kept apart")
    if (SIDED in content) != (True in kinds):
        raise ValueError(f"{SIDED} belongs to products with factors of two sides")
    if n_first and kinds != {True}:
        raise ValueError(f"{SIDED} = {n_first}, and not all factors have two sides")
    if n_first:
        check_idle([factor for factor in factors if isinstance(factor, BipartiteFactor)], n_first, n_vertices)


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
    return pack_ends(numbers) + pack_bits(numbers.levels.ravel(), numbers.bits)


def pack_ends(grid: Grid) -> bytes:
    """Return the least number of a grid and its step."""
    return np.array([grid.least, grid.step], dtype=_GRID).tobytes()


def unpack_numbers(data: NDArray[np.uint8], shape: tuple[int, ...], bits: int) -> NDArray[np.float32] | Grid:
    """Return what :func:`pack_numbers` packed."""
    if bits == FLOAT_BITS:
        return data.view(_GRID).astype(np.float32).reshape(shape)
    size = int(np.prod(shape))
    if bits == EVEN:
        return Grid(np.arange(size).reshape(shape), even_bits(size), *unpack_ends(data))
    levels = unpack_bits(data[2 * _GRID.itemsize :], bits, size)
    return Grid(levels.reshape(shape), bits, *unpack_ends(data))


def unpack_ends(data: NDArray[np.uint8]) -> tuple[float, float]:
    """Return what :func:`pack_ends` packed, and may be followed by levels."""
    least, step = data[: 2 * _GRID.itemsize].view(_GRID).tolist()
    return least, step


def positions_length(shapes: Sequence[Shape]) -> int:
    """Return the bytes of the positions of a factor, which has one side or two."""
    return sum(numbers_length(n_hubs * n_dimensions, bits) for n_hubs, n_dimensions, bits in shapes)


def unpack_positions(data: NDArray[np.uint8], shapes: Sequence[Shape]) -> list[NDArray[np.float32] | Grid]:
    """Return what :func:`pack_positions` packed."""
    ends = np.cumsum([positions_length([shape]) for shape in shapes])
    return [
        unpack_numbers(part, (n_hubs, n_dimensions), bits)
        for part, (n_hubs, n_dimensions, bits) in zip(np.split(data, ends[:-1]), shapes, strict=True)
    ]


def numbers_length(size: int, bits: int) -> int:
    """Return the bytes that so many numbers take."""
    return packed_length(size, bits) + (0 if bits == FLOAT_BITS else 2 * _GRID.itemsize)


def split(name: str, arrays: Mapping[str, NDArray[Any]], lengths: Sequence[int]) -> list[NDArray[np.uint8]]:
    """Return the parts of an array, which has as many bytes as they have together."""
    encoding.check_array(name, arrays[name], "uint8", sum(lengths))
    return np.split(arrays[name], np.cumsum(lengths)[:-1]) if lengths else []
