"""Files of products: what was saved comes back, bytes are as documented, and nothing in a file is trusted."""

from __future__ import annotations

import hashlib
import json
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

from files import CLAIMS, HUGE, assemble, damaged, entry, is_refused, product_parts, refused
from prodige import Graph, ProductGraph
from prodige.graph import BipartiteFactor, Grid, container, file, header
from prodige.graph.container import FileFormatError
from strategies import products


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.prodige"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all examples of a property."""
    return tmp_path_factory.mktemp("files")


def by_hand() -> ProductGraph:
    """Return what the file made by hand holds."""
    return ProductGraph.from_factors(
        [
            Grid([[0], [3]], 2, 0.0, 0.5),
            [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
            Graph.from_edges([0], [1], [3.0]),
        ],
        [[0, 2, 0], [1, 0, 0], [1, 1, 1]],
        Grid([0, 2, 1], 2, 0.0, 0.25),
        power=1.0,
        gauge=2.0,
        places=[0, 1, 2, 1],
    )


def refuse(path: Path, header: Any, body: bytes, match: str = "do not fit together") -> str:
    return refused(path, assemble(header, body), match, ProductGraph.load)


def test_bytes_are_as_documented(path: Path) -> None:
    """Read and written by hand: a file written today must mean the same tomorrow."""
    header, body = product_parts()
    path.write_bytes(assemble(header, body))
    assert ProductGraph.load(path) == by_hand()
    by_hand().save(path)
    data = path.read_bytes()
    length = struct.unpack("<I", data[12:16])[0]
    assert json.loads(data[16 : 16 + length]) == header
    assert data[16 + length : -32] == body


@settings(max_examples=60)
@given(product=products())
def test_what_was_saved_comes_back(directory: Path, product: ProductGraph) -> None:
    path = directory / "round.prodige"
    product.save(path, {"made by": "Ada"})
    loaded = ProductGraph.load(path)
    assert loaded == product
    assert loaded.distances().tobytes() == product.distances().tobytes()
    description = container.describe(path)
    version = 4 if any(isinstance(factor, BipartiteFactor) for factor in product.factors) else 3
    assert (description.kind, description.version, description.metadata) == ("product", version, {"made by": "Ada"})
    content, arrays = file.encode(product)
    assert file.array_names(content) == tuple(arrays)
    assert file.decode(content, arrays | {"more": np.zeros(1)}) == product
    assert file.size(product) * 8 / product.n_items == product.bits_per_item


def test_an_ordinary_header_is_small() -> None:
    """Of 10,000 items every 100 bytes are a twelfth of a bit an item."""
    rng = np.random.default_rng(0)
    factors = [Grid.round(rng.normal(size=(128, 3)), 8) for _ in range(10)]
    product = ProductGraph.from_factors(factors, rng.integers(0, 128, (10_000, 10)), Grid.round(rng.random(10_000), 8))
    _, arrays = file.encode(product)
    # Ten codes of seven bits and a length of eight; the positions are everybody's.
    assert sum(array.size for array in arrays.values()) == 10_000 * 78 / 8 + 10 * 128 * 3 + 11 * 8
    assert file.size(product) - sum(array.size for array in arrays.values()) <= 600


def test_bits_are_those_of_the_grids(path: Path) -> None:
    with pytest.raises(ValueError, match="bits = 8: a product of graphs has the bits of its grids"):
        file.encode(by_hand(), bits=8)


def test_every_flipped_bit_and_truncation_is_refused(path: Path) -> None:
    by_hand().save(path)
    data = path.read_bytes()
    assert not is_refused(path, data, ProductGraph.load)
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        assert is_refused(path, bytes(flipped), ProductGraph.load), position
        assert is_refused(path, data[:position], ProductGraph.load), position


@settings(max_examples=300)
@given(product=products(max_vertices=6), data=st.data())
def test_damage_is_refused_or_harmless(directory: Path, product: ProductGraph, data: st.DataObject) -> None:
    """Also where the checksum was made anew: what is read then is a product like any other."""
    path = directory / "damaged.prodige"
    product.save(path)
    contents = damaged(data, path.read_bytes())
    path.write_bytes(contents[:-32] + hashlib.sha256(contents[:-32]).digest())
    try:
        loaded = ProductGraph.load(path)
    except FileFormatError:
        return
    assert loaded == ProductGraph.from_factors(
        loaded.factors, loaded._codes, loaded._lengths, loaded.power, loaded.gauge, loaded._places, loaded.pendant
    )
    assert not np.isnan(loaded.distances()).any()


@pytest.mark.parametrize("key", ["n_items", "n_vertices", "power", "gauge", "length_bits", "factors"])
def test_content_that_lies_is_refused(path: Path, key: str) -> None:
    header, body = product_parts()
    for claim in CLAIMS:
        if json.dumps(claim) != json.dumps(header["content"][key]) and (key, claim) != ("power", 1.5):
            refuse(path, header | {"content": header["content"] | {key: claim}}, body)
    content = {name: value for name, value in header["content"].items() if name != key}
    refuse(path, header | {"content": content}, body, "a product of graphs needs n_items, n_vertices|do not fit")
    refuse(path, header | {"content": header["content"] | {"more": 1}}, body, "a product of graphs needs")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_factors_that_lie_are_refused(path: Path, place: int) -> None:
    header, body = product_parts()
    claims = [*CLAIMS, [2, 1], [2, 1, 2, 1], [True, 1, 2], [2, 0, 2], [0, 1, 2], [2, 1, 0], [2, 1, 17], [2, 1, 31]]
    claims += [[HUGE, 1, 2], [4097, 1, 2], [2, HUGE, 2], [2, 1, "2"], [[2], 1, 2], {"n_vertices": 2}]
    for claim in claims:
        factors = list(header["content"]["factors"])
        factors[place] = claim
        refuse(path, header | {"content": header["content"] | {"factors": factors}}, body)
    one = {"factors": [[2, 1, 2]] * 257}
    refuse(path, header | {"content": header["content"] | one}, body, "list of 1 to 256")


def test_a_gauge_of_tomorrow(path: Path) -> None:
    header, body = product_parts()
    content = header["content"] | {"gauge": {"name": "logarithm", "base": 2.0}}
    message = refuse(path, header | {"content": content}, body, "its gauge, 'logarithm', is unknown to this version")
    assert message.endswith("; upgrade prodige to read it")
    assert "damaged" not in message
    gauges: list[Any] = [
        {"name": "power"},
        {"name": "power", "exponent": 2},
        {"name": "power", "exponent": 2.5},
        {"name": "power", "exponent": 0.5},
        {"name": "power", "exponent": 2.0, "more": 1},
        {"name": "pendant"},
        {"name": "pendant", "exponent": 2.5},
        {"name": 3, "exponent": 2.0},
        {"exponent": 2.0},
    ]
    for gauge in gauges:
        refuse(path, header | {"content": header["content"] | {"gauge": gauge}}, body)


@pytest.mark.parametrize(
    ("position", "value", "match"),
    [
        (0, 0b1110, "bits behind the last number"),
        (1, 0b010011, r"codes\[0, 1\] = 3 is not a hub: factor 1 has hubs 0 to 2"),
        (1, 0b1010010, "bits behind"),
        (2, 0b1100, "bits behind"),
        (11, 0b11100, "bits behind"),
        (44, 0b1011000, "bits behind"),
        (45, 0b11010010, "is not a vertex"),
        (45, 0b00010000, "no item at vertex 2"),
        (46, 0b011, "degrees are not those of 2 vertices and 1 edges"),
        (47, 0b1, "an edge goes to 2"),
        (48, 0b10, "bits behind"),
    ],
)
def test_bits_that_lie_are_refused(path: Path, position: int, value: int, match: str) -> None:
    header, body = product_parts()
    refuse(path, header, body[:position] + bytes([value]) + body[position + 1 :], match)


@pytest.mark.parametrize(
    ("position", "value", "match"),
    [
        (3, np.nan, "least must be a finite number"),
        (7, -0.5, "step must be a finite number of 0 or more"),
        (7, np.inf, "step must be a finite number"),
        (7, 3e38, "lead to numbers that float32 cannot hold"),
        (12, np.nan, r"positions\[0, 0\] = nan"),
        (12, 3e38, "add up to"),
        (36, -0.5, r"lengths\[0\] = -0.5"),
        (40, 3e38, "float32 cannot hold"),
    ],
)
def test_numbers_that_lie_are_refused(path: Path, position: int, value: float, match: str) -> None:
    header, body = product_parts()
    refuse(path, header, body[:position] + struct.pack("<f", value) + body[position + 4 :], match)


@pytest.mark.parametrize("name", ["codes", "positions", "lengths", "places", "2.degree", "2.weight"])
def test_arrays_of_no_product_are_refused(path: Path, name: str) -> None:
    header, body = product_parts()
    rows = [row | {"name": "other"} if row["name"] == name else row for row in header["arrays"]]
    refuse(path, header | {"arrays": rows}, body, name)
    rows = [row | {"shape": [*row["shape"], 1]} if row["name"] == name else row for row in header["arrays"]]
    refuse(path, header | {"arrays": rows}, body, "should have .* numbers of")
    rows = [row | {"dtype": "int8"} if row["name"] == name else row for row in header["arrays"]]
    refuse(path, header | {"arrays": rows}, body, "of int8")


def test_arrays_too_many_are_refused(path: Path) -> None:
    header, body = product_parts()
    extra = {"arrays": [*header["arrays"], entry("more", "uint8", [0], 0)]}
    refuse(path, header | extra, body, "a product of graphs has no array 'more'")
    header["content"] |= {"n_items": 3}  # which needs no places
    refuse(path, header, body, "a product of graphs has no array 'places'")


def test_a_product_is_no_graph(path: Path) -> None:
    header, body = product_parts()
    refused(path, assemble(header | {"kind": "graph"}, body), "a graph needs n_vertices", Graph.load)
    by_hand().save(path)
    with pytest.raises(FileFormatError, match=r"a product of graphs, not a graph; .* ProductGraph\.load"):
        Graph.load(path)


def forged(n_items: int, n_vertices: int, factors: list[Any], arrays: dict[str, int]) -> bytes:
    """Return a file of zeros with arrays of so many bytes."""
    content = {
        "n_items": n_items,
        "n_vertices": n_vertices,
        "power": 2.0,
        "gauge": {"name": "power", "exponent": 2.0},
        "length_bits": 1,
        "factors": factors,
    }
    rows = [entry(name, "uint8", [n], n) for name, n in arrays.items()]
    header = {"kind": "product", "content": content, "arrays": rows, "metadata": {}}
    return assemble(header, bytes(sum(arrays.values())))


def test_items_take_room(path: Path) -> None:
    """Neither vertices nor items nor factors come for nothing."""
    many = forged(2**31 - 2, 2**31 - 2, [[1, 1, 1]], {"codes": 0, "positions": 9, "lengths": 9})
    refused(path, many, "lengths should have 268435464 numbers of uint8", ProductGraph.load)
    twins = forged(2**31 - 2, 1, [[1, 1, 1]], {"codes": 0, "positions": 9, "lengths": 9, "places": 1})
    refused(path, twins, "places should have 268435456 numbers of uint8", ProductGraph.load)
    n = 2**22
    idle = forged(n, n, [[1, 1, 1]] * 3, {"codes": 0, "positions": 27, "lengths": 8 + n // 8})
    refused(path, idle, "3 of them have one hub", ProductGraph.load)
    tables = {"codes": 9 * 2, "positions": 9 * (8 + 512), "lengths": 9}
    refused(path, forged(1, 1, [[4096, 1, 1]] * 9, tables), "more than 134217728 numbers", ProductGraph.load)


def test_a_small_file_takes_little_memory(path: Path) -> None:
    """The most that 5 kB can ask for, in a process that has 1.5 GB of memory more than it needs to start."""
    path.write_bytes(forged(1, 1, [[4096, 1, 1]] * 8, {"codes": 8 * 2, "positions": 8 * 520, "lengths": 9}))
    program = """
        import resource, sys
        from prodige import ProductGraph
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 3 * 2**29
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        print(ProductGraph.load(sys.argv[1]).distance(0, 0))
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "0.0\n"), result.stderr


@pytest.mark.parametrize("n_copies", [1, 5, 150])
def test_few_copies_take_little_room(path: Path, n_copies: int) -> None:
    """Copies alone are listed where there are few of them, places of all items where there are many."""
    random = np.random.default_rng(0)
    codes, lengths = random.integers(0, 4, (200, 2)), random.random(200)
    plain = ProductGraph.from_factors([random.random((4, 2))] * 2, codes, Grid.round(lengths, 8))
    places = random.permutation(np.r_[np.arange(200), random.integers(0, 200, n_copies)])
    product = plain.with_places(places)
    product.save(path)
    loaded = ProductGraph.load(path)
    assert loaded == product
    np.testing.assert_array_equal(loaded.distances(), plain.distances()[np.ix_(places, places)])
    n_bytes = product.bits_per_item * product.n_items / 8 - plain.bits_per_item * 200 / 8
    assert n_bytes < 100 + min(2 * n_copies * 9 / 8, (200 + n_copies))


# -- coded rows


def frequent(n: int = 600, places: Any = None, lengths: str = "grid") -> ProductGraph:
    """Return a product whose codes are not all equally frequent, with factors of all kinds that may be coded."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.binomial(m - 1, 0.4, n) for m in (9, 4, 3, 2)], axis=1)
    some = rng.gamma(3.0, size=n).astype(np.float32)
    return ProductGraph.from_factors(
        [
            Grid(np.arange(9)[:, None], 4, -1.5, 0.25),
            Grid.round(rng.normal(size=(4, 1)), 5),
            rng.normal(size=(3, 2)),
            Graph.from_edges([0], [1], [3.0]),
        ],
        codes,
        Grid.round(some, 5) if lengths == "grid" else some,
        places=places,
    )


def two_sided(n: int = 600, places: Any = None, lengths: str = "grid") -> ProductGraph:
    """Return a product of two sides whose codes are not all equally frequent: two lines and other words."""
    rng = np.random.default_rng(0)
    shapes = ((9, 5, 1), (4, 7, 1), (6, 3, 2))
    words = [[Grid.round(rng.normal(size=(n_hubs, shape[2])), 5) for n_hubs in shape[:2]] for shape in shapes]
    factors = [*(BipartiteFactor(*both) for both in words[:2]), BipartiteFactor(words[2][0], rng.normal(size=(3, 2)))]
    n_first = n // 3
    first, second = (
        np.stack([rng.binomial(shape[side] - 1, 0.3, size) for shape in shapes], axis=1)
        for side, size in ((0, n_first), (1, n - n_first))
    )
    some = rng.gamma(3.0, size=n).astype(np.float32)
    some[:n_first] = 0
    codes = np.concatenate([first, second + [shape[0] for shape in shapes]])
    return ProductGraph.from_factors(
        factors, codes, Grid.round(some, 5) if lengths == "grid" else some, 1, 1, places=places
    )


@pytest.mark.parametrize("lengths", ["grid", "floats"])
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("make", [frequent, two_sided])
def test_coded_products_come_back(path: Path, make: Any, lengths: str, copies: bool) -> None:
    product = make(places=np.r_[np.arange(600), 5, 5, 7] if copies else None, lengths=lengths)
    product.save(path)
    assert container.describe(path).version == 7
    assert ProductGraph.load(path) == product
    assert 8 * path.stat().st_size / product.n_items == product.bits_per_item
    content, arrays = file.encode(product)
    assert file.array_names(content) == tuple(arrays)
    assert "n_kinds" not in file.encode(product, coded=False)[0]
    assert file.size(product) < file.size(product, coded=False)


@pytest.mark.parametrize(("make", "version"), [(frequent, 5), (two_sided, 6)])
def test_coded_products_of_earlier_versions_are_read(path: Path, make: Any, version: int) -> None:
    """Their headers are as they are."""
    product = make()
    product.save(path)
    data = path.read_bytes()
    end = 16 + int.from_bytes(data[12:16], "little")
    path.write_bytes(assemble(header.inflate(data[16:end]), data[end:-32], version=version))
    assert container.describe(path).version == version
    assert ProductGraph.load(path) == product


def test_even_positions_take_no_bits() -> None:
    content, _ = file.encode(frequent())
    assert content["factors"][:3] == [[[9], 1, 0], [[4], 1, 5], [[3], 2, 32]]


def test_factors_of_two_sides_are_joined_in_headers() -> None:
    assert file.encode(two_sided())[0]["factors"] == [[[9, 4], [5, 7], 1, 5, 5], [[6], [3], 2, 5, 32]]


def test_sides_that_are_not_kept_apart_are_not_coded() -> None:
    product = two_sided()
    mixed = ProductGraph.from_factors(product.factors, product.codes[::-1], product.lengths[::-1], 1, 1)
    content, arrays = file.encode(mixed)
    assert content["n_first"] == 0
    assert "n_kinds" not in content
    assert file.decode(content, arrays) == mixed


def test_few_items_are_not_coded() -> None:
    assert "n_kinds" in file.encode(frequent(256))[0]
    assert "n_kinds" not in file.encode(frequent(255))[0]


@pytest.mark.parametrize(
    "change",
    [
        {"n_kinds": 0},
        {"n_kinds": 1025},
        {"n_kinds": None},
        {"n_first": 3},
        {"factors": 7},
        {"factors": [7]},
        {"factors": [[9, 1, 0]]},
        {"factors": [[[9], 2, 0]]},
        {"factors": [[[9, -1], 1, 5]]},
        {"factors": [[["9"], 1, 5]]},
        {"factors": [[[9] * 300, 1, 0]]},
        {"length_bits": 0},
        {"n_vertices": 300},
        {"n_items": 2**31 - 2, "n_vertices": 2**31 - 2},
    ],
    ids=str,
)
def test_coded_content_that_lies_is_refused(change: dict[str, Any]) -> None:
    content, arrays = file.encode(frequent())
    with pytest.raises((ValueError, KeyError)):
        file.decode(content | change, arrays)


@pytest.mark.parametrize(
    "change",
    [
        {"n_kinds": 1},
        {"n_kinds": [1, 1]},
        {"n_kinds": [1, 1, -1]},
        {"n_kinds": [1, 1, 10**6]},
        {"n_kinds": [1, 1, 0]},
        {"n_kinds": [0, 1, 100]},
        {"n_kinds": [1, "1", 100]},
        {"n_first": 0},
        {"n_first": 600},
        {"factors": [[[9, 4], [5], 1, 5, 5], [[6], [3], 2, 5, 32]]},
        {"factors": [[9, [5], 1, 5, 5]]},
        {"factors": [[[9, 4], [5, 7], 1, 0, 0], [[6], [3], 2, 5, 32]]},
    ],
    ids=str,
)
def test_coded_sides_that_lie_are_refused(change: dict[str, Any]) -> None:
    content, arrays = file.encode(two_sided())
    with pytest.raises((ValueError, KeyError)):
        file.decode(content | change, arrays)


@pytest.mark.parametrize("make", [frequent, two_sided])
def test_coded_arrays_that_lie_are_refused(make: Any) -> None:
    content, arrays = file.encode(make())
    for codes in (arrays["codes"][:20], arrays["codes"][:300], arrays["codes"].astype(np.int64)):
        with pytest.raises(ValueError, match=r"codes|bytes|end before"):
            file.decode(content, arrays | {"codes": codes})


@pytest.mark.parametrize("make", [frequent, two_sided])
def test_every_flipped_bit_of_a_coded_file_is_refused(path: Path, make: Any) -> None:
    make(300).save(path)
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        with pytest.raises(FileFormatError):
            ProductGraph.load(path)
