"""Real processes for tests of ranks: a function runs in each process of a gloo group, and its results come back."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

# One process that has imported what takes long; those of the tests are forked from it.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch.distributed", "prodige.compression.compressor", "processes"])

SECONDS = 60


class Worker(NamedTuple):
    """A process and where its result comes from."""

    process: BaseProcess
    results: Connection


def start_ranks(n_ranks: int, function: Callable[..., Any], *arguments: Any, folder: Path) -> list[Worker]:
    """Start a function in each process of a group, as ``function(rank, *arguments)``."""
    rendezvous = tempfile.mktemp(dir=folder)
    workers = []
    for rank in range(n_ranks):
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=run, args=(sender, rendezvous, rank, n_ranks, function, arguments))
        process.start()
        sender.close()
        workers.append(Worker(process, receiver))
    return workers


def finish(workers: list[Worker]) -> list[Any]:
    """Return what each process returned, or the exception that it ended with; None if it was killed."""
    results = []
    for process, connection in workers:
        try:
            results.append(connection.recv() if connection.poll(SECONDS) else TimeoutError("a rank hangs"))
        except EOFError:
            results.append(None)
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
    return results


def run_ranks(n_ranks: int, function: Callable[..., Any], *arguments: Any, folder: Path) -> list[Any]:
    """Run a function in each process of a group; return its results by rank."""
    return finish(start_ranks(n_ranks, function, *arguments, folder=folder))


def run(
    results: Connection, rendezvous: str, rank: int, size: int, function: Callable[..., Any], arguments: Any
) -> None:
    """Be one of the processes."""
    import signal

    import torch.distributed as dist

    signal.signal(signal.SIGINT, signal.default_int_handler)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=size)
    dist.barrier()  # who is quick does not leave before all have come
    try:
        results.send(function(rank, *arguments))
    except BaseException as error:
        error.__notes__ = [traceback.format_exc()]
        results.send(error)
