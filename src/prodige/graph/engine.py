"""The engine behind a graph: which native search answers, and with how many threads.

There are two, with the same answers. The general search works on any graph. The hub engine is many times faster where
a few hubs cover nearly all edges, as in every graph this library learns. The structure of the graph decides.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige._validation import check_integer

Network = _core.Network32 | _core.Network64
HubNetwork = _core.HubNetwork32 | _core.HubNetwork64
Forest = _core.Forest32 | _core.Forest64

# Below this many vertices and arcs to look at, starting another thread costs more than it brings.
_WORK_PER_THREAD = 1 << 18


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
        self.network: Network
        self.hubs: HubNetwork | None = None
        if weights.dtype == np.float32:
            self.network = _core.Network32(topology, weights, n_jobs)
            if layout is not None:
                self.hubs = _core.HubNetwork32(self.network, layout)
        else:
            self.network = _core.Network64(topology, weights, n_jobs)
            if layout is not None:
                self.hubs = _core.HubNetwork64(self.network, layout)

    @property
    def name(self) -> str:
        """``"hubs"`` or ``"general"``."""
        return "general" if self.hubs is None else "hubs"

    def are_hubs(self, vertices: NDArray[np.int32]) -> bool:
        """Whether the hub engine was chosen, and each of these vertices as a hub of it."""
        return self._is_hub is not None and bool(self._is_hub[vertices].all())

    def with_weights(self, weights: NDArray[Any], n_jobs: int | None = None) -> Engine:
        """Return the same graph with other weights of the same type; cheap where they moved little."""
        threads = count_threads(n_jobs)  # the core takes fewer where there is little to sort
        other = copy.copy(self)
        if self.hubs is None:
            other.network = self.network.with_weights(weights, threads)
        else:
            other.hubs = self.hubs.with_weights(weights, threads)
            other.network = other.hubs.network
        return other

    def search(self, sources: NDArray[np.int32], n_jobs: int | None) -> Forest:
        """Shortest-path trees over all edges."""
        searcher = self.network if self.hubs is None else self.hubs
        return searcher.search(sources, n_jobs=self.threads(n_jobs, sources.size))

    def distances(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32] | None, n_jobs: int | None
    ) -> NDArray[Any]:
        """Distances from sources to targets, to all items where ``targets`` is None."""
        searcher = self.network if self.hubs is None else self.hubs
        return searcher.distances(sources, targets, self.n_items, self.threads(n_jobs, sources.size))

    def neighbors(
        self, sources: NDArray[np.int32], k: int | None, radius: float | None, n_jobs: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """Items around each source, as offsets, vertices and distances of all rows one after the other."""
        searcher = self.network if self.hubs is None else self.hubs
        return searcher.neighbors(sources, self.n_items, k, radius, self.threads(n_jobs, sources.size))

    def threads(self, n_jobs: int | None, n_sources: int) -> int:
        """Threads worth using for a call with this many sources."""
        work = n_sources * (self.topology.n_vertices + 2 * self.topology.n_edges)
        return max(1, min(threads_for(n_jobs, work), n_sources))


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads ``n_jobs`` stands for.

    ``None`` and -1 mean every processor this process may use (affinity and container limits count), -2 all but one,
    and so on, as in joblib.

    Examples
    --------
    >>> from prodige.graph.engine import count_threads
    >>> count_threads(3)
    3
    """
    if n_jobs is not None and check_integer("n_jobs", n_jobs, -(2**15), 2**15) > 0:
        return n_jobs
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None for all processors or a positive number")
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + (-1 if n_jobs is None else n_jobs))


def threads_for(n_jobs: int | None, work: int) -> int:
    """Return how many of the threads ``n_jobs`` stands for are worth starting for so many steps of a native loop.

    Examples
    --------
    >>> from prodige.graph.engine import threads_for
    >>> threads_for(1000, work=40), threads_for(2, work=10**9)
    (1, 2)
    """
    return min(count_threads(n_jobs), work // _WORK_PER_THREAD + 1)
