"""The semantics of the native core, in plain Python.

Slow and short on purpose: this is what the core is tested against, and the place to read what it computes. A graph is
three sequences, ``tails``, ``heads`` and ``weights``; an edge is its position in them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

SEARCHED_SUBTREE = 64  # larger ones are not searched for paths back in

_STEP = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def _scramble(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def is_present(edge: int, probability: float, seed: int, group: int) -> bool:
    """Whether an uncertain edge exists in the graph sampled for ``group``."""
    key = _scramble((_scramble((seed + _STEP) & _MASK) + group * _STEP) & _MASK)
    bits = _scramble((key + (edge + 1) * _STEP) & _MASK)
    return (bits >> 11) * 2.0**-53 < probability


@dataclass
class Tree:
    """A shortest-path tree; vertices appear in the order they were settled."""

    distance: dict[int, float] = field(default_factory=dict)
    parent: dict[int, int] = field(default_factory=dict)  # vertex above; not for the source
    edge: dict[int, int] = field(default_factory=dict)  # edge to it
    asked: dict[int, bool] = field(default_factory=dict)  # edges the search asked about, and the answers

    def subtree(self, top: int) -> set[int]:
        """Vertices at and below ``top``."""
        below = {top}
        for v in self.distance:  # parents come first
            if v in self.parent and self.parent[v] in below:
                below.add(v)
        return below


def neighbors(tails: Sequence[int], heads: Sequence[int], v: int) -> list[tuple[int, int]]:
    """Arcs out of ``v`` as (target, edge)."""
    return [(h if t == v else t, e) for e, (t, h) in enumerate(zip(tails, heads, strict=True)) if v in (t, h)]


def search(
    tails: Sequence[int],
    heads: Sequence[int],
    weights: Sequence[float],
    source: int,
    present: Callable[[int], bool] | None = None,
) -> Tree:
    """Dijkstra's algorithm; an uncertain edge is asked about only where it would improve a tentative distance."""
    tree = Tree()
    tentative: dict[int, float] = {source: 0.0}
    path: dict[int, tuple[int, int]] = {}
    queue = [(0.0, source)]
    while queue:
        distance, u = heapq.heappop(queue)
        if u in tree.distance:
            continue
        tree.distance[u] = distance
        if u in path:
            tree.parent[u], tree.edge[u] = path[u]
        for v, e in sorted(neighbors(tails, heads, u), key=lambda arc: (weights[arc[1]], arc[1])):
            if distance + weights[e] < tentative.get(v, math.inf):
                if present is not None:
                    tree.asked[e] = present(e)
                    if not tree.asked[e]:
                        continue
                tentative[v], path[v] = distance + weights[e], (u, e)
                heapq.heappush(queue, (tentative[v], v))
    return tree


def edge_gradient(tree: Tree, gradient: Sequence[float], n_edges: int) -> list[float]:
    """dL/dw of every edge: the gradients of all vertices below it."""
    out = [0.0] * n_edges
    for v, e in tree.edge.items():
        out[e] += sum(gradient[x] for x in tree.subtree(v))
    return out


def shift(
    tree: Tree,
    tails: Sequence[int],
    heads: Sequence[int],
    weights: Sequence[float],
    v: int,
    unreachable: float,
    present: Callable[[int], bool] | None = None,
) -> float:
    """How far ``v`` moves without the edge above it: the best path into its subtree, and up the tree from there."""
    below = tree.subtree(v)
    paths = [
        tree.distance[u] + weights[e] + (tree.distance[x] - tree.distance[v])
        for x in (below if len(below) <= SEARCHED_SUBTREE else {v})
        for u, e in neighbors(tails, heads, x)
        if e != tree.edge[v] and u in tree.distance and u not in below and (present is None or present(e))
    ]
    return max(min([unreachable, *paths]) - tree.distance[v], 0.0)


def product_distance(
    distances: Sequence[Sequence[Sequence[float]]],
    codes: Sequence[Sequence[int]],
    lengths: Sequence[float],
    power: float,
    gauge: float,
    pendant: bool,
    i: int,
    j: int,
) -> float:
    """Distance in a product of graphs; ``distances[m][g][h]`` is that of two hubs of factor ``m``."""
    if i == j:
        return 0.0
    hubs = zip(distances, codes[i], codes[j], strict=True)
    total, both = sum(table[g][h] ** power for table, g, h in hubs), lengths[i] + lengths[j]
    return both + math.pow(total, 1 / gauge) if pendant else math.pow(both + total, 1 / gauge)
