"""How fast the search core is beside what else a Python user can install.

Every library gets the same graph in its own best form, built before the clock starts, and the same sources; all run in
this process, on one thread, in turns, and the best of several rounds counts. The table shows sources per second and
their ratio to scipy.

    python benchmarks/search.py [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse.csgraph import dijkstra
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import prodige
from prodige import Graph, _core
from prodige.graph.engine import Engine


@dataclass
class Problem:
    """A graph and the sources to search from."""

    name: str
    graph: Graph
    sources: NDArray[np.int32]


# -- graphs ------------------------------------------------------------------------------------------------------------


def candidate_graph(rng: np.random.Generator, n: int = 10_000, n_nearest: int = 32, n_random: int = 32) -> Graph:
    """Where learning starts: nearest and random neighbours of noisy digits, weights are Euclidean distances."""
    digits = load_digits().data
    points = digits[rng.integers(0, len(digits), n)] + rng.normal(0, 2, (n, digits.shape[1]))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    nearest = NearestNeighbors(n_neighbors=n_nearest + 1).fit(points).kneighbors(points, return_distance=False)[:, 1:]
    i = np.repeat(np.arange(n), n_nearest + n_random)
    j = np.concatenate([nearest, rng.integers(0, n, (n, n_random))], axis=1).ravel()
    i, j = i[i != j], j[i != j]
    return Graph.from_edges(i, j, np.linalg.norm(points[i] - points[j], axis=1), n_vertices=n)


def pruned_graph(rng: np.random.Generator, local: float = 0.0, n: int = 10_000, n_hubs: int = 32) -> Graph:
    """Where learning ends: 1.5 edges an item, all to hubs whose degrees fall like 1/rank, and some hub-hub edges.

    ``local`` adds this share of edges between items.
    """
    share = 1 / np.arange(1, n_hubs + 1)
    first, second = rng.choice(n_hubs, (2, n), p=share / share.sum())
    some = rng.random(n) < 0.5
    a, b = np.triu_indices(n_hubs, 1)
    kept = rng.random(a.size) < 0.3
    i = np.concatenate([np.arange(n), np.flatnonzero(some), n + a[kept]])
    j = np.concatenate([n + first, n + second[some], n + b[kept]])
    weight = np.where(i < n, rng.uniform(0.3, 0.8, i.size), rng.uniform(0.02, 0.1, i.size))
    if local:
        x, y = rng.integers(0, n, (2, int(local * i.size)))
        x, y = x[x != y], y[x != y]
        i, j = np.concatenate([i, x]), np.concatenate([j, y])
        weight = np.concatenate([weight, rng.uniform(0.05, 0.6, x.size)])
    return Graph.from_edges(i, j, weight, n_vertices=n + n_hubs, n_items=n)


def grid_graph(rng: np.random.Generator, side: int = 100) -> Graph:
    """Make a road-like grid with a tenth of the streets closed."""
    v = np.arange(side * side).reshape(side, side)
    i = np.concatenate([v[:, :-1].ravel(), v[:-1].ravel()])
    j = np.concatenate([v[:, 1:].ravel(), v[1:].ravel()])
    open_ = rng.random(i.size) < 0.9
    return Graph.from_edges(i[open_], j[open_], rng.uniform(0.5, 1.5, open_.sum()), n_vertices=side * side)


# -- the libraries -----------------------------------------------------------------------------------------------------

Search = Callable[[NDArray[np.int32]], NDArray[Any]]


def ours(graph: Graph, layout: Any, n_jobs: int = 1) -> Search:
    """Our distances to all vertices, by the general search (``layout=None``) or the engine the structure asks for."""
    i, j, weight = graph.edges
    engine = Engine(_core.Topology(graph.n_vertices, i, j), weight, graph.n_items, layout)
    return lambda sources: engine.searcher.distances(sources, None, graph.n_vertices, n_jobs)


def peers(graph: Graph) -> dict[str, Search]:
    """Everybody else who is installed."""
    matrix = graph.to_scipy().astype(np.float64)  # what csgraph works in: saves it a conversion
    found: dict[str, Search] = {"scipy": lambda sources: dijkstra(matrix, directed=True, indices=sources)}
    i, j, weight = (column.tolist() for column in graph.edges)

    if importlib.util.find_spec("igraph"):
        import igraph

        peer = igraph.Graph(n=graph.n_vertices, edges=list(zip(i, j, strict=True)))
        found["igraph"] = lambda sources: np.array(peer.distances(source=sources.tolist(), weights=weight))
    if importlib.util.find_spec("networkit"):
        import networkit

        networkit.setNumberOfThreads(1)
        # Reads the arrays as these types, whatever they are.
        ends = tuple(column.astype(np.uint64) for column in graph.edges[:2])
        network = networkit.GraphFromCoo((graph.edges.weight.astype(float), ends), n=graph.n_vertices, weighted=True)

        def run_networkit(sources: NDArray[np.int32]) -> NDArray[Any]:
            search = networkit.distance.SPSP(network, sources.tolist())
            search.run()
            return np.array(search.getDistances())

        found["networkit"] = run_networkit
    if importlib.util.find_spec("rustworkx"):
        import rustworkx

        rust = rustworkx.PyGraph(multigraph=False)
        rust.add_nodes_from(range(graph.n_vertices))
        rust.add_edges_from(list(zip(i, j, weight, strict=True)))

        def run_rustworkx(sources: NDArray[np.int32]) -> NDArray[Any]:
            rows = np.full((sources.size, graph.n_vertices), np.inf)
            for row, source in zip(rows, sources.tolist(), strict=True):
                lengths = rustworkx.dijkstra_shortest_path_lengths(rust, source, float)
                row[source] = 0
                row[list(lengths.keys())] = list(lengths.values())
            return rows

        found["rustworkx"] = run_rustworkx
    return found


# -- measuring ---------------------------------------------------------------------------------------------------------


def best_seconds(searches: dict[str, Search], sources: dict[str, NDArray[np.int32]], rounds: int) -> dict[str, float]:
    """Seconds per source of each search, the best of several rounds, taken in turns so that noise hits all alike."""
    best = dict.fromkeys(searches, np.inf)
    for _ in range(rounds):
        for name, search in searches.items():
            start = time.perf_counter()
            search(sources[name])
            best[name] = min(best[name], (time.perf_counter() - start) / sources[name].size)
    return best


def measure(problem: Problem, rounds: int) -> dict[str, Any]:
    """Time every library on one graph, after checking that all find the same distances."""
    graph = problem.graph
    searches = {"prodige, general": ours(graph, None)}
    if graph._engine.name == "hubs":
        searches["prodige, hub engine"] = ours(graph, "auto")
    searches |= peers(graph)

    expected = searches["scipy"](problem.sources[:4])
    sources = {}
    for name, search in searches.items():
        found = search(problem.sources[:4])
        found = np.where(found > 1e300, np.inf, found)  # networkit's word for "no path"
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=name)
        # Enough sources for a measurement, not more than patience allows.
        start = time.perf_counter()
        search(problem.sources[:4])
        affordable = max(4, int(4 * 0.5 / (time.perf_counter() - start)))
        sources[name] = problem.sources[:affordable]
    seconds = best_seconds(searches, sources, rounds)
    result: dict[str, Any] = {
        "graph": problem.name,
        "n_vertices": graph.n_vertices,
        "n_edges": graph.n_edges,
        "sources_per_second": {name: 1 / value for name, value in seconds.items()},
        "ratio_to_scipy": {name: seconds["scipy"] / value for name, value in seconds.items()},
    }
    return result | measure_training(problem, rounds)


def measure_training(problem: Problem, rounds: int) -> dict[str, Any]:
    """Time what learning does besides searching, what a second thread brings, and the memory a search takes."""
    graph, sources = problem.graph, problem.sources[:64]
    i, j, weight = graph.edges
    topology = _core.Topology(graph.n_vertices, i, j)
    network = _core.Network32(topology, weight, 1)
    gradient = np.random.default_rng(0).normal(size=(sources.size, graph.n_items)).astype(np.float32)
    forest = network.search(sources)
    steps: dict[str, Search] = {
        "search": lambda s: network.search(s, n_jobs=1).vertices[:0],
        "backward": lambda s: forest.backward(gradient, None, 1),
        "removal cost": lambda s: forest.removal_cost(gradient, gradient, None, 10.0, 1),
        "new weights": lambda s: np.array([network.with_weights(weight, 1).scratch_nbytes]),
    }
    seconds = best_seconds(steps, dict.fromkeys(steps, sources), rounds)
    threads = {"one": ours(graph, "auto", 1), "two": ours(graph, "auto", 2)}
    many = np.resize(problem.sources, max(256, problem.sources.size))
    second = best_seconds(threads, dict.fromkeys(threads, many), rounds)
    bounded = network.search(sources[:1], k=10, n_items=graph.n_items)
    return {
        "backward_share_of_search": seconds["backward"] / seconds["search"],
        "removal_cost_share_of_search": seconds["removal cost"] / seconds["search"],
        "new_weights_in_searches": seconds["new weights"] * sources.size / seconds["search"],
        "second_core": second["one"] / second["two"],
        "bytes_per_settled_vertex": forest.nbytes / forest.offsets[-1],
        "bytes_of_a_10_nearest_search": bounded.nbytes,
        "scratch_bytes_per_vertex_and_thread": network.scratch_nbytes / graph.n_vertices,
    }


def show(results: list[dict[str, Any]], console: Console) -> None:
    """Print one table per question."""
    for result in results:
        table = Table(title=f"{result['graph']}: {result['n_vertices']:,} vertices, {result['n_edges']:,} edges")
        table.add_column("one thread")
        table.add_column("sources/s", justify="right")
        table.add_column("× scipy", justify="right")
        for name, rate in result["sources_per_second"].items():
            table.add_row(name, f"{rate:,.0f}", f"{result['ratio_to_scipy'][name]:.2f}")
        console.print(table)
    table = Table(title="Learning, threads and memory")
    table.add_column("")
    for result in results:
        table.add_column(result["graph"], justify="right")
    for key, form in {
        "backward_share_of_search": "{:.1%}",
        "removal_cost_share_of_search": "{:.0%}",
        "new_weights_in_searches": "{:.1f}",
        "second_core": "{:.2f}",
        "bytes_per_settled_vertex": "{:.1f}",
        "bytes_of_a_10_nearest_search": "{:,}",
        "scratch_bytes_per_vertex_and_thread": "{:.1f}",
    }.items():
        table.add_row(key.replace("_", " "), *(form.format(result[key]) for result in results))
    console.print(table)


def main() -> None:
    """Run all graphs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the best counts")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    graphs = {
        "candidate": candidate_graph(rng),
        "pruned": pruned_graph(rng),
        "pruned + 5 % local edges": pruned_graph(rng, local=0.05),
        "road-like grid": grid_graph(rng),
    }
    results = []
    for name, graph in graphs.items():
        print(f"{name} …", file=sys.stderr, flush=True)
        sources = rng.permutation(graph.n_items)[:2048].astype(np.int32)
        results.append(measure(Problem(name, graph, sources), options.rounds))
    environment = {
        "prodige": prodige.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "processor": processor(),
        "n_cpus": len(os.sched_getaffinity(0)),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if options.json:
        print(json.dumps({"environment": environment, "results": results}, indent=2))
    else:
        show(results, Console())
        print(environment)


def processor() -> str:
    """Return the name of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    main()
