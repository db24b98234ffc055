"""Labels, groups and positions: what is taken, what is refused and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prodige import Graph
from prodige.drawing.viewer.inputs import MOST_GROUPS, check_groups, check_labels, check_positions


def star() -> Graph:
    """Items 0 to 2 on hub 3; hub 4 is alone."""
    return Graph.from_edges([0, 1, 2], [3, 3, 3], [1, 1, 1], n_vertices=5, n_items=3)


@pytest.mark.parametrize("labels", [[1, "b", None], (1, "b", None), np.array([1, "b", None], object)])
def test_labels_become_texts(labels: Any) -> None:
    assert check_labels(labels, star()) == ["1", "b", "None"]


def test_labels_of_other_kinds() -> None:
    assert check_labels(np.array([b"caf\xc3\xa9", b"\xff", b""]), star()) == ["café", "\ufffd", ""]
    assert check_labels(list("abcde"), star()) == list("abcde")
    assert check_labels(None, star()) is None


@pytest.mark.parametrize("name", ["labels", "groups"])
def test_texts_are_checked(name: str) -> None:
    check: Any = check_labels if name == "labels" else check_groups
    with pytest.raises(ValueError, match=rf"{name} must have 3 \(items\) or 5 \(with hubs\) entries, got 4"):
        check(list("abcd"), star())
    with pytest.raises(TypeError, match=f"{name} must be a sequence with one entry per item, got str"):
        check("abc", star())
    with pytest.raises(TypeError, match="got int"):
        check(3, star())
    with pytest.raises(TypeError, match="got generator"):
        check((letter for letter in "abc"), star())
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(3, 1\)"):
        check(np.zeros((3, 1)), star())
    with pytest.raises(ValueError, match=f"{name} must have 2 entries, got 3"):
        check(list("abc"), Graph.from_edges([0], [1], [1]))


def test_groups_are_ordered() -> None:
    groups = check_groups([10, 9, "nan", "b", "9"], star())
    assert groups is not None
    assert groups.names == ["9", "10", "b", "nan"]
    assert groups.codes.tolist() == [1, 0, 3, 2, 0]
    assert groups.codes.dtype == np.uint16


def test_number_of_groups_is_bounded() -> None:
    n = MOST_GROUPS + 1
    graph = Graph.from_edges([], [], [], n_vertices=n)
    with pytest.raises(ValueError, match=f"groups has {n} different values, at most {MOST_GROUPS}"):
        check_groups(range(n), graph)
    assert check_groups(np.arange(n) // 2, graph) is not None


def test_hubs_without_a_place_go_among_their_items() -> None:
    places = check_positions([[0, 0], [3, 0], [0, 6]], star())
    assert places.dtype == np.float32
    np.testing.assert_array_equal(places[3:], [[1, 2], [1, 2]])  # the second one has no items: the middle of all
    given = np.arange(10.0).reshape(5, 2)
    np.testing.assert_array_equal(check_positions(given, star()), given)


def test_positions_are_checked() -> None:
    shapes = r"\[3, 2\] \(items\) or \[5, 2\] \(with hubs\)"
    for wrong in (np.zeros((4, 2)), np.zeros((3, 3)), np.zeros(3)):
        with pytest.raises(ValueError, match=f"positions must have shape {shapes}, got "):
            check_positions(wrong, star())
    with pytest.raises(TypeError, match="positions must hold real numbers, got dtype <U1"):
        check_positions([["a", "b"]] * 3, star())
    for bad in (np.nan, np.inf, 1e39):
        positions = np.zeros((3, 2))
        positions[1, 0] = bad
        with pytest.raises(ValueError, match=r"positions\[1\] = \[.*, 0\.0\] is no place in the plane \(1 such rows\)"):
            check_positions(positions, star())
