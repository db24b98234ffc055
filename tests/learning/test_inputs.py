"""What learnable graphs are given, by itself; test_embedding.py has all that is refused."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

from prodige.learning.inputs import check_candidates, check_values, check_vertices, warn_if_apart


def test_candidates_are_counted_and_copied() -> None:
    i, j = np.array([0, 3], np.int32), np.array([1, 1], np.int32)
    tails, heads, n_vertices, n_items = check_candidates(i, j, None, None)
    assert (n_vertices, n_items) == (4, 4)
    i[:] = j[:] = 7
    assert (tails.tolist(), heads.tolist()) == ([0, 3], [1, 1])
    assert check_candidates([0], [1], None, 5)[2:] == (5, 5)
    assert check_candidates([], [], None, None)[2:] == (1, 1)


def test_one_number_stands_for_all() -> None:
    assert check_values("weight", 2, 3, math.inf).tolist() == [2, 2, 2]
    assert check_values("weight", torch.tensor([0.0, 1.0], requires_grad=True), 2, 1.0).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"one entry per vertex \(2\), got shape \(3,\)"):
        check_values("lengths", [1, 2, 3], 2, math.inf, owner="vertex")


def test_vertices_may_be_tensors() -> None:
    cpu = torch.device("cpu")
    assert check_vertices("sources", torch.tensor([2, 0]), 3, cpu).tolist() == [2, 0]
    with pytest.raises(IndexError, match=r"sources\[0\] = 3"):
        check_vertices("sources", [3], 3, cpu)


def test_hubs_may_be_apart_and_items_may_not() -> None:
    ends = np.array([0], np.int32), np.array([1], np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_apart(2, *ends, 3)
    with pytest.warns(UserWarning, match="leave the items in 2 parts"):
        warn_if_apart(3, *ends, 3)
