"""What ``torchrun`` tells a command: which of its processes this is, and whether they were started again.

Every process of ``torchrun -m prodige compress`` runs the same command. Each reads its share of the rows; the first one
writes, measures and speaks for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

# What torchrun sets for each process.
_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Launch(NamedTuple):
    """Which of how many processes this is.

    Attributes
    ----------
    rank, size : int
    n_restarts : int
        How often they were started anew, one of them having failed (``torchrun --max-restarts``).
    """

    rank: int = 0
    size: int = 1
    n_restarts: int = 0

    @property
    def is_first(self) -> bool:
        """Whether this process speaks for all."""
        return self.rank == 0

    def rows(self, n_rows: int) -> slice:
        """Return the rows that this process reads.

        Examples
        --------
        >>> from prodige.cli.launch import Launch
        >>> Launch(1, 3).rows(10)
        slice(3, 6, None)
        """
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    def share(self, X: Any) -> Any:
        """Return this process's part of an array, a sparse matrix or a source: all of it where it is alone."""
        from prodige.metric.sources import PartSource, Source

        if self.size == 1:
            return X
        if not isinstance(X, Source):
            return X[self.rows(X.shape[0])]
        rows = self.rows(X.n_items)
        return PartSource(X, rows.start, rows.stop)


def launched(environment: Mapping[str, str] | None = None) -> Launch:
    """Return what the launcher says; one process alone where there is none.

    Examples
    --------
    >>> from prodige.cli.launch import launched
    >>> launched({})
    Launch(rank=0, size=1, n_restarts=0)
    """
    environment = os.environ if environment is None else environment
    if not all(name in environment for name in _NAMES):
        return Launch()
    n_restarts = int(environment.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return Launch(int(environment["RANK"]), int(environment["WORLD_SIZE"]), n_restarts)


@contextmanager
def joined(launch: Launch) -> Iterator[dict[str, Any]]:
    """Join the other processes for a while; yield what tells a fit of their group, nothing where there are none."""
    if launch.size == 1:
        yield {}
        return
    dist: Any = import_module("torch.distributed")
    # A launcher that starts processes anew keeps its store, with addresses of those that are gone; torch itself would
    # find and try these. So each start has a place of its own in it.
    has_store = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(address, port, launch.size, is_master=not has_store and launch.is_first)
    own = dist.PrefixStore(f"prodige/{launch.n_restarts}", store)
    # By gloo, as the work is done on processors, whatever else there is.
    dist.init_process_group("gloo", store=own, rank=launch.rank, world_size=launch.size)
    try:
        yield {"process_group": dist.group.WORLD}
    finally:
        dist.destroy_process_group()
