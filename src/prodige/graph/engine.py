"""The engines behind graphs: which native search answers, and with how many threads.

For a graph there are two, with the same answers. The general search works on any graph. The hub engine is many times
faster where a few hubs cover nearly all edges, as in every graph this library learns. The structure of the graph
decides. A product of graphs needs no search: its engine adds up entries of tables.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.threads import count_threads, threads_for

Network = _core.Network32 | _core.Network64
HubNetwork = _core.HubNetwork32 | _core.HubNetwork64
Forest = _core.Forest32 | _core.Forest64
AnchorTrees = _core.AnchorTrees32 | _core.AnchorTrees64


class Engine:
    """A topology with weights, ready to be searched.

    Parameters
    ----------
    topology
        Which vertices are joined.
    weights
        One per edge, float32 or float64; all results have the same type.
    n_items
        Vertices from here on are hubs.
    layout
        Hubs to use, ``None`` to always use the general search, ``"auto"`` to let the structure decide.
    """

    def __init__(
        self,
        topology: _core.Topology,
        weights: NDArray[Any],
        n_items: int,
        layout: _core.HubLayout | str | None = "auto",
        n_jobs: int = 1,
    ) -> None:
        self.topology = topology
        self.n_items = n_items
        is_hub: NDArray[np.uint8] | None = None
        if isinstance(layout, str):
            is_hub = topology.choose_hubs(n_items)
            layout = None if is_hub is None else _core.HubLayout(topology, is_hub)
        self.layout = layout
        self._is_hub = is_hub
        self._network: Network
        self._hubs: HubNetwork | None = None
        if weights.dtype == np.float32:
            self._network = _core.Network32(topology, weights, n_jobs)
            if layout is not None:
                self._hubs = _core.HubNetwork32(self._network, layout)
        else:
            self._network = _core.Network64(topology, weights, n_jobs)
            if layout is not None:
                self._hubs = _core.HubNetwork64(self._network, layout)

    @property
    def name(self) -> str:
        """``"hubs"`` or ``"general"``."""
        return "general" if self._hubs is None else "hubs"

    @property
    def searcher(self) -> Network | HubNetwork:
        """The native search that answers."""
        return self._network if self._hubs is None else self._hubs

    def are_hubs(self, vertices: NDArray[np.int32]) -> bool:
        """Whether the hub engine was chosen, and each of these vertices as a hub of it."""
        return self._is_hub is not None and bool(self._is_hub[vertices].all())

    def with_weights(self, weights: NDArray[Any], n_jobs: int | None = None) -> Engine:
        """Return the same graph with other weights of the same type; cheap where they moved little."""
        threads = count_threads(n_jobs)  # the core takes fewer where there is little to sort
        other = copy.copy(self)
        if self._hubs is None:
            other._network = self._network.with_weights(weights, threads)
        else:
            other._hubs = self._hubs.with_weights(weights, threads)
            other._network = other._hubs.network
        return other

    def search(self, sources: NDArray[np.int32], n_jobs: int | None) -> Forest:
        """Shortest-path trees over all edges."""
        return self.searcher.search(sources, n_jobs=self.threads(n_jobs, sources.size))

    def search_pair(self, source: int, target: int) -> Forest:
        """Shortest-path tree of a source, as far as a target."""
        return self._network.search(np.array([source], np.int32), targets=np.array([target], np.int32))

    def search_sampled(
        self, sources: NDArray[np.int32], probabilities: NDArray[Any], seed: int, n_jobs: int | None
    ) -> Forest:
        """Shortest-path trees over edges that are present with a probability, drawn for each source alone.

        Never by the hub engine, which would prepare the graph of each source first.
        """
        threads = self.threads(n_jobs, sources.size)
        return self._network.search(sources, probabilities=probabilities, seed=seed, n_jobs=threads)

    def anchor_trees(self, anchors: NDArray[np.int32], n_jobs: int | None) -> AnchorTrees:
        """Shortest-path trees of anchors over the hubs; for the hub engine alone."""
        threads = self.threads(n_jobs, anchors.size)
        if isinstance(self._hubs, _core.HubNetwork32):
            return _core.AnchorTrees32(self._hubs, anchors, threads)
        assert self._hubs is not None
        return _core.AnchorTrees64(self._hubs, anchors, threads)

    def measure_stress(
        self,
        sources: NDArray[np.int32],
        target: NDArray[np.float32],
        blocks: NDArray[np.int32],
        longest: float,
        with_flows: bool,
        n_jobs: int,
    ) -> tuple[Any, ...]:
        """Residuals of blocks of landmarks, summed as the core does; for the hub engine in float32 alone."""
        assert isinstance(self._hubs, _core.HubNetwork32)
        return _core.measure_stress(self._hubs, sources, target, blocks, longest, with_flows, n_jobs)

    def distances(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32] | None, n_jobs: int | None
    ) -> NDArray[Any]:
        """Distances from sources to targets, to all items where ``targets`` is None."""
        return self.searcher.distances(sources, targets, self.n_items, self.threads(n_jobs, sources.size))

    def pair_distances(self, i: NDArray[np.int32], j: NDArray[np.int32], n_jobs: int | None) -> NDArray[Any]:
        """Distances from ``i[p]`` to ``j[p]``; one search for each different ``i``."""
        return self.searcher.pair_distances(i, j, self.threads(n_jobs, i.size))

    def neighbors(
        self, sources: NDArray[np.int32], k: int | None, radius: float | None, n_jobs: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Items around each source, as offsets, vertices and distances of all rows one after the other."""
        return self.searcher.neighbors(sources, self.n_items, k, radius, self.threads(n_jobs, sources.size))

    def threads(self, n_jobs: int | None, n_sources: int) -> int:
        """Threads worth using for a call with this many sources."""
        work = n_sources * (self.topology.n_vertices + 2 * self.topology.n_edges)
        return max(1, min(threads_for(n_jobs, work), n_sources))


class ProductEngine:
    """Tables of distances in the factors of a product, ready to be added up.

    Parameters
    ----------
    n_hubs
        Number of hubs of each factor, shape [M].
    tables
        What going from one hub to another adds to a sum, [H, H] for each factor, one after the other.
    codes
        The hub of each item in each factor, shape [N, M].
    lengths
        What an item adds to each of its sums, or of its distances, shape [N].
    places
        Items of the same place are at distance 0; ``None`` where no two are.
    gauge
        Distances are sums to the power ``1 / gauge``.
    pendant
        Whether lengths add to distances instead of sums.
    """

    def __init__(
        self,
        n_hubs: NDArray[np.int32],
        tables: NDArray[np.float32],
        codes: NDArray[np.int32],
        lengths: NDArray[np.float32],
        places: NDArray[np.int32] | None,
        gauge: float,
        pendant: bool,
    ) -> None:
        self.n_items, self.n_factors = codes.shape
        self._product = _core.Product(n_hubs, tables, codes.ravel().astype(np.uint16), lengths, places, gauge, pendant)

    def distances(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32] | None, n_jobs: int | None
    ) -> NDArray[np.float32]:
        """Distances from sources to targets, to all items where ``targets`` is None."""
        n_targets = self.n_items if targets is None else targets.size
        return self._product.distances(sources, targets, self.threads(n_jobs, sources.size * n_targets))

    def pair_distances(self, i: NDArray[np.int32], j: NDArray[np.int32], n_jobs: int | None) -> NDArray[np.float32]:
        """Distances between ``i[p]`` and ``j[p]``."""
        return self._product.pair_distances(i, j, self.threads(n_jobs, i.size))

    def neighbors(
        self, sources: NDArray[np.int32], k: int | None, radius: float | None, n_jobs: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Items around each source, as offsets, vertices and distances of all rows one after the other."""
        return self._product.neighbors(sources, k, radius, self.threads(n_jobs, sources.size * self.n_items))

    def threads(self, n_jobs: int | None, n_sums: int) -> int:
        """Threads worth using for a call that needs so many sums."""
        return threads_for(n_jobs, n_sums * (self.n_factors + 1))
