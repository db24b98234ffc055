from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.queues import Queue
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_info

from prodige.threads import count_threads, in_parts, one_thread, torch_threads


def in_a_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(function()))
    worker.start()
    worker.join()
    return results[0]


@pytest.fixture
def three() -> Any:
    """Three threads of torch, on any machine and whatever the environment says."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_threads_are_counted_as_joblib_counts() -> None:
    every = count_threads(None)
    assert every >= 1
    assert count_threads(-1) == every
    assert count_threads(-2) == max(1, every - 1)
    assert count_threads(-1000) == 1
    assert count_threads(7) == 7
    with pytest.raises(ValueError, match="n_jobs"):
        count_threads(0)


class TestTorchThreads:
    def test_ends_with_what_was_before_also_after_an_error(self, three: int) -> None:
        with torch_threads(1):
            assert torch.get_num_threads() == 1
        with pytest.raises(KeyError), torch_threads(1):
            raise KeyError
        assert torch.get_num_threads() == three

    def test_is_of_this_thread_alone(self, three: int) -> None:
        with torch_threads(1):
            assert in_a_thread(torch.get_num_threads) == three
        assert in_a_thread(torch.get_num_threads) == three

    def test_overlapping_ones_leave_nothing_behind(self, three: int) -> None:
        """A begins, B begins, A ends, B ends: B must not take the count of A for its own."""
        a_began, b_began, a_ended = (threading.Event() for _ in range(3))
        counts = {}

        def a() -> None:
            with one_thread():
                a_began.set()
                assert b_began.wait(10)
            counts["a"] = torch.get_num_threads()
            a_ended.set()

        def b() -> None:
            assert a_began.wait(10)
            with one_thread():
                b_began.set()
                assert a_ended.wait(10)
                counts["inside b"] = torch.get_num_threads()
            counts["b"] = torch.get_num_threads()

        workers = [threading.Thread(target=work) for work in (a, b)]
        blas = [library["num_threads"] for library in threadpool_info()]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert counts == {"a": three, "inside b": 1, "b": three}
        assert in_a_thread(torch.get_num_threads) == three
        assert [library["num_threads"] for library in threadpool_info()] == blas


class TestInParts:
    @pytest.mark.parametrize("n_threads", [1, 2, 5])
    def test_keeps_the_order_and_gives_torch_one_thread(self, n_threads: int, three: int) -> None:
        answers = in_parts(lambda part: (part, torch.get_num_threads()), range(20), n_threads)
        assert answers == [(part, 1) for part in range(20)]
        assert torch.get_num_threads() == three

    def test_one_thread_is_the_caller(self) -> None:
        assert in_parts(lambda _: threading.current_thread(), [0, 1], 1) == [threading.current_thread()] * 2

    @pytest.mark.parametrize("n_threads", [1, 2])
    def test_an_error_ends_it(self, n_threads: int) -> None:
        done = []

        def work(part: int) -> None:
            if part == 3:
                raise ValueError("part 3")
            done.append(part)

        with pytest.raises(ValueError, match="part 3"):
            in_parts(work, range(10_000), n_threads)
        assert len(done) < 10_000 - 1


def _multiply(answers: Queue[float]) -> None:
    answers.put(float((torch.ones(600, 600) @ torch.ones(600, 600)).sum()))


def test_torch_goes_on_in_a_forked_process(three: int) -> None:
    """A pool of OpenMP is waited for by the child without end, unless torch is told that there is none."""
    context = multiprocessing.get_context("fork")
    answers: Queue[float] = context.Queue()
    torch.ones(600, 600) @ torch.ones(600, 600)  # starts the pool
    child = context.Process(target=_multiply, args=(answers,))
    child.start()
    try:
        assert answers.get(timeout=60) == 600.0**3
    finally:
        child.kill()
        child.join()
