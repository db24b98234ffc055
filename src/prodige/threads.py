"""Threads of the libraries underneath: torch, BLAS and OpenMP.

Sums that several threads share out have other last bits than those of one thread, and a fit makes last bits large. So
whatever is promised to the bit runs these libraries on one thread, :func:`one_thread`; the work is shared out above
them, in parts that do not depend on the number of threads, :func:`in_parts`. That also leaves no pool of OpenMP behind,
which a forked process would wait for without end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")

_lock = threading.Lock()
_n_limiting = 0
_limit: Any = None


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """Let torch use so many threads in this thread for a while; others keep what they have.

    Examples
    --------
    >>> import torch
    >>> from prodige.threads import torch_threads
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    try:  # from here on, since Ctrl-C may fall into the next lines as well
        with _lock:
            if before != n_threads:
                torch.set_num_threads(n_threads)
                # That also became the count of every thread which is to use torch for the first time. The count of a
                # thread that ends at once is of no concern, so it sets that of the others back.
                resetting = threading.Thread(target=torch.set_num_threads, args=(before,))
                resetting.start()
                resetting.join()
        yield
    finally:
        if before != n_threads:
            with _lock:
                torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch, BLAS and OpenMP to one thread for a while: what they compute has the same bits for any ``n_jobs``.

    Threads may overlap in it; BLAS, which has one setting for the whole process, gets its own back after the last.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from prodige.threads import one_thread
    >>> with one_thread():
    ...     {library["num_threads"] for library in threadpool_info()}
    {1}
    """
    global _n_limiting, _limit
    with _lock:
        if _n_limiting == 0:
            _limit = limit("blas")
        _n_limiting += 1
    try:
        with torch_threads(1), limit("openmp"):
            yield
    finally:
        with _lock:
            _n_limiting -= 1
            if _n_limiting == 0:
                _limit.restore_original_limits()


def limit(kind: str) -> Any:
    """Give the loaded libraries of a kind one thread; those of the other kind are not touched, now or at the end."""
    return ThreadpoolController().select(user_api=kind).limit(limits=1)


def in_parts(function: Callable[[Part], Result], parts: Iterable[Part], n_threads: int) -> list[Result]:
    """Return what a function makes of each part, in their order, on up to so many threads.

    torch has one thread in each of them. An error or Ctrl-C drops the parts that have not begun.

    Examples
    --------
    >>> from prodige.threads import in_parts
    >>> in_parts(lambda part: part**2, [1, 2, 3], n_threads=2)
    [1, 4, 9]
    """

    def alone(part: Part) -> Result:
        with torch_threads(1):
            return function(part)

    todo = list(parts)
    n_threads = min(n_threads, len(todo))
    if n_threads <= 1:
        return [alone(part) for part in todo]
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return list(pool.map(alone, todo))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _after_fork() -> None:
    """Let torch go on in a forked process, which has none of the threads of the one it was forked from."""
    global _lock, _n_limiting
    _lock, _n_limiting = threading.Lock(), 0
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
