"""Random graphs, products and interactions for tests: small enough for the oracles, odd enough to find mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from numpy.typing import NDArray

from prodige import Graph, ProductGraph
from prodige.graph import BipartiteFactor, Grid
from prodige.graph.factors import as_factor


@dataclass
class Edges:
    """A random graph: unique undirected edges without self-loops."""

    n_vertices: int
    n_items: int
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    weight: NDArray[Any]

    def matrix(self) -> scipy.sparse.csr_array:
        entries = (np.concatenate([self.weight] * 2).astype(float), (np.r_[self.i, self.j], np.r_[self.j, self.i]))
        return scipy.sparse.csr_array(entries, shape=(self.n_vertices, self.n_vertices))

    def with_dtype(self, dtype: Any) -> Edges:
        return Edges(self.n_vertices, self.n_items, self.i, self.j, self.weight.astype(dtype))


def make_edges(rng: np.random.Generator, n_items: int, n_hubs: int, density: float, weights: str) -> Edges:
    """Edges among items with probability ``density``, from items to hubs and among hubs more often."""
    n = n_items + n_hubs
    i, j = np.triu_indices(n, 1)
    chance = np.where(j < n_items, density, 0.5)
    keep = rng.random(i.size) < chance
    choices = {
        "real": rng.uniform(0.01, 1, i.size),
        "ties": rng.integers(0, 4, i.size).astype(float),
        "zero": np.zeros(i.size),
    }
    order = rng.permutation(np.flatnonzero(keep))  # edge ids need not follow the vertices
    ends = np.stack([i, j])[:, order].astype(np.int32)
    return Edges(n, n_items, ends[0], ends[1], choices[weights][order].astype(np.float32))


@st.composite
def graphs(draw: st.DrawFn, weights: tuple[str, ...] = ("real", "ties", "zero"), max_items: int = 14) -> Edges:
    """Graphs with and without hubs; sparse ones fall into several parts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items = draw(st.integers(1, max_items))
    n_hubs = draw(st.integers(0, 4))
    density = draw(st.sampled_from([0.0, 0.05, 0.2, 0.6]))
    return make_edges(rng, n_items, n_hubs, density, draw(st.sampled_from(weights)))


def point_graph(n: int = 800, n_neighbors: int = 12, n_random: int = 12, seed: int = 0) -> Edges:
    """Nearest neighbours and random edges of random points: what learning starts from."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 8))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distance, axis=1)[:, 1 : n_neighbors + 1]
    i = np.repeat(np.arange(n), n_neighbors + n_random)
    j = np.concatenate([nearest, rng.integers(0, n, (n, n_random))], axis=1).ravel()
    pairs = np.unique(np.sort(np.stack([i, j])[:, i != j], axis=0), axis=1).astype(np.int32)
    return Edges(n, n, pairs[0], pairs[1], distance[pairs[0], pairs[1]].astype(np.float32))


def hub_graph(n_items: int = 600, n_hubs: int = 8, n_local: int = 30, seed: int = 0) -> Edges:
    """Items joined to one to three hubs, hubs to each other, and a few items to items."""
    rng = np.random.default_rng(seed)
    ends = [(x, n_items + h) for x in range(n_items) for h in rng.choice(n_hubs, rng.integers(1, 4), replace=False)]
    ends += [(n_items + h, n_items + g) for h in range(n_hubs) for g in range(h) if rng.random() < 0.5]
    ends += [tuple(rng.choice(n_items, 2, replace=False)) for _ in range(n_local)]
    pairs = np.unique(np.sort(np.array(ends), axis=1), axis=0).astype(np.int32)
    weight = rng.uniform(0.2, 1.0, len(pairs)).astype(np.float32)
    return Edges(n_items + n_hubs, n_items, pairs[:, 0].copy(), pairs[:, 1].copy(), weight)


def crowds(n_users: int = 60, n_items: int = 24, seed: int = 0) -> scipy.sparse.csr_array:
    """Two crowds with half of the items each, and a few interactions across."""
    random = np.random.RandomState(seed)
    own = (np.arange(n_users)[:, None] % 2) == (np.arange(n_items) % 2)
    return scipy.sparse.csr_array((random.rand(n_users, n_items) < np.where(own, 0.5, 0.05)).astype(np.float32))


def many(n_users: int, n_items: int) -> scipy.sparse.csr_array:
    """Users of ten crowds with a dozen or two of items each."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(n_users), 20)
    item = rng.integers(n_items, size=user.size)
    own = rng.random(user.size) < 0.8
    item[own] += (user[own] - item[own]) % 10
    return scipy.sparse.csr_array((np.ones(user.size), (user, item % n_items)), shape=(n_users, n_items))


def make_product(
    rng: np.random.Generator,
    n_vertices: int,
    kinds: str,
    power: float = 2.0,
    gauge: float = 2.0,
    n_twins: int = 0,
    ties: bool = False,
    pendant: bool = False,
) -> ProductGraph:
    """A factor for each letter: positions, a grid of them, a connected graph, one that may be in parts (d), two sides.

    Where all factors have two sides (b), vertices of the first come first in most products, and have no lengths.
    """
    factors: list[Any] = []
    for kind in kinds:
        n_hubs = int(rng.integers(1, 7))
        positions = rng.integers(0, 3, (n_hubs, 2)) if ties else rng.normal(size=(n_hubs, int(rng.integers(1, 4))))
        if kind == "b":
            factors.append(make_bipartite(rng, n_hubs, ties))
        elif kind in "pg":
            factors.append(
                positions.astype(np.float32) if kind == "p" else Grid.round(positions, int(rng.integers(1, 9)))
            )
        else:
            density = 1.0 if kind == "c" else 0.3
            edges = make_edges(rng, n_hubs, int(rng.integers(0, 3)), density, "ties" if ties else "real")
            factors.append(Graph.from_edges(edges.i, edges.j, edges.weight, edges.n_vertices, n_hubs))
    sizes = [as_factor("factor", factor).n_hubs for factor in factors]
    codes = np.stack([rng.integers(0, size, n_vertices) for size in sizes], axis=1)
    lengths: Any = rng.integers(0, 3, n_vertices) / 2 if ties else rng.uniform(0, 1, n_vertices)
    if rng.random() < 0.5:
        lengths = Grid.round(lengths, 3)
    if set(kinds) == {"b"} and n_vertices > 1 and rng.random() < 0.8:
        codes, lengths = on_two_sides(rng, factors, n_vertices, isinstance(lengths, Grid))
    places = None
    if n_twins:
        places = rng.permutation(np.r_[np.arange(n_vertices), rng.integers(0, n_vertices, n_twins)])
    return ProductGraph.from_factors(factors, codes, lengths, power, gauge, places, pendant)


def make_bipartite(rng: np.random.Generator, n_hubs: int, ties: bool) -> BipartiteFactor:
    """A factor of two sides, each on a grid or not."""
    words: list[Any] = []
    for n in (n_hubs, int(rng.integers(1, 5))):
        values = rng.integers(-1, 2, (n, 2)) if ties else rng.normal(size=(n, 2))
        words.append(values.astype(np.float32) if rng.random() < 0.5 else Grid.round(values, int(rng.integers(2, 9))))
    return BipartiteFactor(*words)


def on_two_sides(
    rng: np.random.Generator, factors: list[BipartiteFactor], n_vertices: int, on_grid: bool
) -> tuple[NDArray[Any], Any]:
    """Codes and lengths of vertices of the first side, then of the second."""
    n_first = int(rng.integers(1, n_vertices))
    first = [rng.integers(0, factor.n_first, n_first) for factor in factors]
    second = [rng.integers(factor.n_first, factor.n_hubs, n_vertices - n_first) for factor in factors]
    codes = np.concatenate([np.stack(first, axis=1), np.stack(second, axis=1)])
    levels = np.where(np.arange(n_vertices) < n_first, 0, rng.integers(0, 8, n_vertices))
    return codes, Grid(levels, 3, 0.0, 0.25) if on_grid else levels / 4


@st.composite
def products(draw: st.DrawFn, max_vertices: int = 14) -> ProductGraph:
    """Products of one to four factors of every kind, with and without ties and items that share a vertex."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    power, gauge = draw(st.sampled_from([(1.0, 1.0), (1.0, 1.5), (2.0, 2.0), (1.3, 1.7), (1.0, 2.0), (2.0, 1.0)]))
    return make_product(
        rng,
        draw(st.integers(1, max_vertices)),
        draw(st.one_of(st.text("pgcdb", min_size=1, max_size=4), st.text("b", min_size=1, max_size=3))),
        power,
        gauge,
        draw(st.sampled_from([0, 0, 3])),
        draw(st.booleans()),
        draw(st.booleans()),
    )
