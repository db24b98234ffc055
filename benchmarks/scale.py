"""From a thousand items to a million: seconds, memory, error and recall of a product, beside codes of vectors.

Every fit has a process of its own, reads its rows from a memory map, and is measured as its file comes back. Rivals
have the same bits and the same pairs: OPQ of faiss with 8 codes of 8 bits, OPQ with 7 and a residual energy of 8 bits,
and residual coordinates, these fitted to 100,000 of the items where there are more (each item is rounded by itself).

    python benchmarks/scale.py [--sizes 1000,10000,100000,1000000] [--data images] [--objective distances]
                               [--features 64] [--jobs 2] [--directory DIR] [--json FILE] [--plot FILE]

Images are those of MNIST10k, turned, stretched, slanted, shifted and noised at random, on their first principal
directions (``--features 784``: the pixels themselves); ``--data mixture`` are Gaussian clusters. Memory is anonymous
memory beside what the process had before the fit: the data are in a file. Of a machine that does other work as well,
core seconds and rates, which are of the time of one core, say more than seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prodige import DistanceCompressor, datasets, load
from prodige.metric.evaluation import Report, evaluate_blocks
from prodige.metric.sources import as_source
from prodige.metric.space import Space
from prodige.provenance import provenance

CHUNK = 10_000  # images that are made at a time: a thousand items are the first of a million
N_QUERIES = 256
BITS = 64
SIDE = 28
MOST_OF_RESIDUAL = 100_000


# -- data ------------------------------------------------------------------------------------------------------------


def make_data(kind: str, n: int, n_features: int, directory: Path) -> Path:
    """Return a file with so many rows, made unless it is there."""
    path = directory / f"{kind}-{n}-{n_features}.npy"
    if path.exists():
        return path
    made = path.with_suffix(".part")  # what is interrupted is not taken for whole
    rows = np.lib.format.open_memmap(made, "w+", np.float32, (n, n_features))
    draw = images(n_features) if kind == "images" else mixture(n_features)
    for number, begin in enumerate(range(0, n, CHUNK)):
        rows[begin : begin + CHUNK] = draw(number)[: n - begin]
    rows.flush()
    made.rename(path)
    return path


def images(n_features: int) -> Any:
    """Return what draws chunks of deformed images, on principal directions unless all pixels are asked for."""
    X = np.asarray(datasets.load("mnist10k").X, np.float32)
    originals = torch.from_numpy(X / X.max()).reshape(-1, 1, SIDE, SIDE)

    def deformed(number: int) -> torch.Tensor:
        random = np.random.default_rng([7, number])
        turn, slant = random.uniform(-0.3, 0.3, CHUNK), random.uniform(-0.25, 0.25, CHUNK)
        scale, shift = random.uniform(0.85, 1.15, (CHUNK, 2)), random.uniform(-0.15, 0.15, (CHUNK, 2))
        maps = np.zeros((CHUNK, 2, 3), np.float32)
        maps[:, 0, 0], maps[:, 0, 1] = np.cos(turn) * scale[:, 0], slant - np.sin(turn)
        maps[:, 1, 0], maps[:, 1, 1] = np.sin(turn), np.cos(turn) * scale[:, 1]
        maps[:, :, 2] = shift
        shape = [CHUNK, 1, SIDE, SIDE]
        grid = torch.nn.functional.affine_grid(torch.from_numpy(maps), shape, align_corners=False)
        some = originals[torch.from_numpy(random.integers(0, len(originals), CHUNK))]
        made = torch.nn.functional.grid_sample(some, grid, align_corners=False).reshape(CHUNK, -1)
        return made + torch.from_numpy(random.normal(0, 0.05, made.shape).astype(np.float32))

    if n_features == SIDE**2:
        return lambda number: deformed(number).numpy()
    first = torch.cat([deformed(number) for number in range(2)]).double()
    mean = first.mean(dim=0)
    directions = torch.linalg.eigh((first - mean).T @ (first - mean))[1].flip(1)[:, :n_features].float()
    return lambda number: ((deformed(number) - mean.float()) @ directions).numpy()


def mixture(n_features: int, n_clusters: int = 200) -> Any:
    """Return what draws chunks of Gaussian clusters, each wider in some directions than in others."""
    random = np.random.default_rng(11)
    centres = random.normal(size=(n_clusters, n_features)) * 1.5
    widths = random.gamma(2.0, 0.5, (n_clusters, n_features))

    def chunk(number: int) -> NDArray[np.float32]:
        draw = np.random.default_rng([11, number])
        cluster = draw.integers(0, n_clusters, CHUNK)
        rows = centres[cluster] + widths[cluster] * draw.normal(size=(CHUNK, n_features))
        return np.asarray(rows, np.float32)

    return chunk


# -- measuring -------------------------------------------------------------------------------------------------------


class Peak:
    """The most anonymous memory of this process while it is in use, beside what it had before, in bytes."""

    def __enter__(self) -> Peak:
        self.start = self.most = self.now()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    @property
    def bytes(self) -> int:
        """What was taken at the most."""
        return self.most - self.start

    def watch(self) -> None:
        """Look every 20 milliseconds."""
        while not self.over.wait(0.02):
            self.most = max(self.most, self.now())

    @staticmethod
    def now() -> int:
        """Return the anonymous memory of the process."""
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("RssAnon"))
        return 1024 * int(line.split()[1])


def judge(model: Any, X: Any, jobs: int) -> Report:
    """Return how well a model keeps distances from some items to all, and their neighbours."""
    source = as_source(X)
    queries = np.sort(np.random.RandomState(1).permutation(source.n_items)[: min(N_QUERIES, source.n_items)])
    return evaluate_blocks(model, source, Space(source.take(queries), n_jobs=jobs), queries, 10, 0)


def figures(report: Report) -> dict[str, float]:
    """Return the figures that are compared."""
    return {"mse": report.mse, "share": report.mse / report.variance, "recall": report.recall}


def fit(path: Path, objective: str, metric_only: bool, jobs: int) -> dict[str, Any]:
    """Fit a product, and measure the fit, its file, its answers and how it takes new items."""
    X = np.load(path, mmap_mode="r")
    warm = DistanceCompressor(bits_per_item=BITS, structure="product", random_state=0, n_jobs=jobs)
    warm.fit(np.random.default_rng(0).normal(size=(500, 8)))  # libraries are loaded by now
    goal: Any = objective if objective in ("distances", "neighbors") else float(objective)
    compressor = DistanceCompressor(
        bits_per_item=BITS, objective=goal, structure="product", metric_only=metric_only, random_state=0, n_jobs=jobs
    )
    began, spent = time.perf_counter(), time.process_time()
    with Peak() as peak:
        compressor.fit(X)
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "graph.prodige"
        compressor.graph_.save(file)
        bits = 8 * file.stat().st_size / len(X)
        graph: Any = load(file)
    result: dict[str, Any] = {"n_items": len(X), "seconds": seconds, "core seconds": spent, "bytes": peak.bytes}
    result["bits"] = bits
    result |= figures(judge(graph, X, jobs))
    result["factors"] = [factor.n_hubs for factor in graph.factors]
    result["exponents"] = [graph.power, graph.gauge]
    some = np.arange(0, len(X), max(1, len(X) // 200))[:200]
    graph.kneighbors(some[:1], k=10, n_jobs=1)
    began = time.process_time()
    graph.kneighbors(some, k=10, n_jobs=1)
    result["queries a second"] = some.size / (time.process_time() - began)
    new = np.array(X[: min(len(X), 100_000)]) + np.float32(1e-3)
    compressor.n_jobs = 1
    compressor.insert(new[:1000])
    began = time.process_time()
    compressor.insert(new)
    result["inserted a second"] = len(new) / (time.process_time() - began)
    return result


# -- rivals ----------------------------------------------------------------------------------------------------------


class Words:
    """Vectors in place of items, with an energy each or without."""

    def __init__(self, words: NDArray[np.float32], energy: NDArray[np.float32] | None = None) -> None:
        self.words = words
        self.energy = energy
        self.squares = (words.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)

    def distances(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return distances between some items."""
        squares = (
            self.squares[sources][:, None] + self.squares[targets] - 2 * self.words[sources] @ self.words[targets].T
        )
        if self.energy is not None:
            squares += self.energy[sources][:, None] + self.energy[targets]
        return np.asarray(np.sqrt(np.maximum(squares, 0)), np.float32)


def rivals(path: Path, jobs: int) -> dict[str, Any]:
    """Return the figures of codes of vectors of as many bits."""
    from prodige.baselines.residual import ResidualCoordinates, energies
    from prodige.reproduce.quantisers import import_faiss

    faiss = import_faiss()
    faiss.omp_set_num_threads(jobs)
    X = np.load(path)
    X -= X.mean(axis=0, dtype=np.float64).astype(np.float32)
    result: dict[str, Any] = {"n_items": len(X)}
    squares = (X.astype(np.float64) ** 2).sum(axis=1)
    for name, n_codes in (("OPQ 8x8", 8), ("OPQ 7x8 + energy", 7)):
        began = time.perf_counter()
        width = X.shape[1] // n_codes * n_codes
        rows = np.ascontiguousarray(X[:, :width])
        rotation = faiss.OPQMatrix(width, n_codes)
        rotation.niter = 16
        rotation.train(rows[:MOST_OF_RESIDUAL])
        rows = rotation.apply_py(rows)
        coder = faiss.ProductQuantizer(width, n_codes, min(8, int(math.log2(len(X)))))
        coder.train(rows[:MOST_OF_RESIDUAL])
        words = coder.decode(coder.compute_codes(rows))
        energy = None
        if n_codes == 7:
            energy = energies(words, len(X) * squares + squares.sum()).astype(np.float32)
            low, high = np.quantile(energy, [0.001, 0.999])
            energy = (low + np.rint((energy.clip(low, high) - low) / (high - low) * 255) / 255 * (high - low)).astype(
                "f4"
            )
        seconds = time.perf_counter() - began
        result[name] = {"seconds": seconds} | figures(judge(Words(words, energy), X, jobs))
    began = time.perf_counter()
    some = X[:MOST_OF_RESIDUAL]
    residual = ResidualCoordinates(bits_per_item=BITS, random_state=0, n_jobs=jobs).fit(some)
    seconds = time.perf_counter() - began
    result["residual coordinates"] = {"seconds": seconds} | figures(judge(residual, some, jobs))
    return result


# -- the whole -------------------------------------------------------------------------------------------------------


def alone(arguments: list[str]) -> dict[str, Any]:
    """Run a part of this script in a process of its own."""
    run = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds and memory over items, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes = [row["n_items"] for row in rows]
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
    for panel, name, scale, title in (
        (panels[0], "seconds", 1, "seconds"),
        (panels[1], "bytes", 1e9, "memory beside the data, GB"),
    ):
        values = [row[name] / scale for row in rows]
        panel.loglog(sizes, values, marker="o", label="product")
        panel.set(xlabel="items", title=title)
        panel.grid(alpha=0.3)
    if all("rivals" in row for row in rows):
        for name in ("OPQ 8x8",):
            panels[0].loglog(sizes, [row["rivals"][name]["seconds"] for row in rows], marker="s", label=name)
        panels[0].legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--data", choices=["images", "mixture"], default="images")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--objective", default="distances")
    parser.add_argument("--metric-only", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--directory", type=Path, help="where data are kept; a temporary one when left out")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--part", choices=["fit", "rivals"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "fit":
        print(json.dumps(fit(options.path, options.objective, options.metric_only, options.jobs)))
        return
    if options.part == "rivals":
        print(json.dumps(rivals(options.path, options.jobs)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure_all(options, options.directory or Path(temporary))
    sizes = [row["n_items"] for row in rows]
    large = [row for row in rows if row["n_items"] >= 10_000]
    result: dict[str, Any] = {"rows": rows}
    if len(large) > 1:
        for name in ("seconds", "core seconds", "bytes"):
            result[f"exponent of {name}"] = exponent([row["n_items"] for row in large], [row[name] for row in large])
    result["provenance"] = provenance(shlex.join(["python", "benchmarks/scale.py", *sys.argv[1:]]))
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.plot and len(sizes) > 1:
        draw(rows, options.plot)


def measure_all(options: argparse.Namespace, directory: Path) -> list[dict[str, Any]]:
    """Return the figures of every size."""
    rows = []
    for size in map(int, options.sizes.split(",")):
        path = make_data(options.data, size, options.features, directory)
        common = ["--path", str(path), "--jobs", str(options.jobs), "--objective", options.objective]
        row = alone(["--part", "fit", *common, *(["--metric-only"] if options.metric_only else [])])
        if not options.no_rivals:
            row["rivals"] = alone(["--part", "rivals", *common])
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
