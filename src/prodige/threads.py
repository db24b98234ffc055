"""Threads: how many there are, and those of the libraries underneath, torch, BLAS and OpenMP.

Sums that several threads share out have other last bits than those of one thread, and a fit makes last bits large. So
whatever is promised to the bit runs these libraries on one thread, :func:`one_thread`; the work is shared out above
them, in parts that do not depend on the number of threads, :func:`in_parts`. That also leaves no pool of OpenMP behind,
which a forked process would wait for without end.

torch takes a second to import, and a graph needs none of it. So it is imported where its threads are first set.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from prodige._validation import check_integer

Part = TypeVar("Part")
Result = TypeVar("Result")

# Below this many vertices and arcs to look at, starting another thread costs more than it brings.
_WORK_PER_THREAD = 1 << 18

_lock = threading.Lock()
_n_limiting = 0
_limit: Any = None


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads ``n_jobs`` stands for.

    ``None`` and -1 mean every processor this process may use (affinity and container limits count), -2 all but one,
    and so on, as in joblib.

    Examples
    --------
    >>> from prodige.threads import count_threads
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
    >>> from prodige.threads import threads_for
    >>> threads_for(1000, work=40), threads_for(2, work=10**9)
    (1, 2)
    """
    return min(count_threads(n_jobs), work // _WORK_PER_THREAD + 1)


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
    import torch

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
    import torch  # noqa: F401 -- before the limits: a library that is loaded later would not know of them

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
    from threadpoolctl import ThreadpoolController

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
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):  # loaded, and to its end
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
