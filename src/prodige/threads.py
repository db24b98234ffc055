"""Threads of torch, which are a setting of the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch use so many threads for a while.

    Examples
    --------
    >>> import torch
    >>> from prodige.threads import torch_threads
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
