"""Two ranks of one thread each against one, fitting the same product: seconds, and whether the bits are the same.

Seconds by the clock are what counts, on a machine with a free processor for each rank. Where others work on it as well,
seconds of the processor tell more: those of the first rank, which does whatever is not shared, against those of one
process alone.

    python benchmarks/ranks.py --items 20000 --ranks 2
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from importlib import import_module
from typing import Any

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray

from prodige import DistanceCompressor


def main() -> None:
    """Print a line for each number of ranks, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bits", type=float, default=64)
    parser.add_argument("--memory-limit", default=None, help="makes it a fit to a sample with a pass over all items")
    arguments = parser.parse_args()
    settings = {"bits_per_item": arguments.bits, "structure": "product", "memory_limit": arguments.memory_limit}
    found = {}
    processes: Any = import_module("torch.multiprocessing")
    for n_ranks in (1, arguments.ranks):
        results: Any = processes.get_context("spawn").SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            processes.spawn(fit, (n_ranks, arguments.items, settings, f"file://{folder}/group", results), n_ranks)
        found[n_ranks] = sorted(results.get() for _ in range(n_ranks))
        _, clock, processor, digest = found[n_ranks][0]
        print(f"{n_ranks} ranks: {clock:.1f} s, {processor:.1f} s of the processor, {digest}")
    one, many = (found[n_ranks][0] for n_ranks in (1, arguments.ranks))
    print(f"{one[1] / many[1]:.2f} times as fast by the clock, {one[2] / many[2]:.2f} by the processor")
    print("the same bits" if len({row[3] for rows in found.values() for row in rows}) == 1 else "OTHER BITS")


def fit(rank: int, n_ranks: int, n_items: int, settings: dict[str, Any], address: str, results: Any) -> None:
    """Be one of the ranks."""
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=n_ranks)
    rows = np.array_split(make_data(n_items), n_ranks)[rank]
    clock, processor = time.perf_counter(), time.process_time()
    compressor = DistanceCompressor(**settings, random_state=0, n_jobs=1)
    compressor.fit(rows, process_group=dist.group.WORLD)
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    graph = compressor.graph_
    digest = hashlib.sha256(graph.codes.tobytes() + graph.lengths.tobytes()).hexdigest()[:12]
    results.put((rank, clock, processor, digest))
    dist.barrier()
    dist.destroy_process_group()


def make_data(n_items: int) -> NDArray[np.float32]:
    """Return points in clusters, in 64 directions of ever less variance."""
    random = np.random.default_rng(0)
    scale = np.linspace(1, 0.2, 64)
    centres = 2 * scale * random.normal(size=(50, 64))
    return (centres[random.integers(0, 50, n_items)] + scale * random.normal(size=(n_items, 64))).astype(np.float32)


if __name__ == "__main__":
    main()
