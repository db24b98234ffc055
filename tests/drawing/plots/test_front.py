"""Error and recall at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from canvases import draw, legend_texts, new_axes
from prodige.drawing import plots
from prodige.drawing.plots.front import Point, best_points

POINTS = st.lists(st.tuples(st.integers(1, 6).map(float), st.integers(0, 6).map(float)), min_size=1, max_size=12)


@given(POINTS)
def test_the_best_points(points: list[Point]) -> None:
    best = best_points(points)

    def is_beaten(one: Point) -> bool:
        return any(other[0] <= one[0] and other[1] >= one[1] and other != one for other in points)

    assert best == sorted({point for point in points if not is_beaten(point)})


def test_lines_through_the_best() -> None:
    results = {"rq": [(0.3, 0.6), (0.1, 0.4), (0.2, 0.3)], "graph": [(0.2, 0.5)], "mds": []}
    ax = plots.plot_front(results, ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["rq", "graph"]
    first = ax.lines[0]
    assert np.asarray(first.get_xdata()).tolist() == [0.1, 0.3]
    assert np.asarray(first.get_ydata()).tolist() == [0.4, 0.6]
    assert np.asarray(ax.collections[0].get_offsets()).shape == (3, 2)
    assert ax.get_xscale() == "log"
    assert ax.lines[1].get_linewidth() > first.get_linewidth()  # ours stands out


def test_colours_are_those_of_error_by_size() -> None:
    names = {"a": "first", "b": "second"}
    front = plots.plot_front({"b": [(0.2, 0.5)]}, names=names, ax=new_axes())
    sizes = plots.plot_bits([{"method": "b", "bits_per_item": 8, "mse": 0.1}], names=names, ax=new_axes())
    assert front.lines[0].get_color() == sizes.containers[0].lines[0].get_color()  # type: ignore[attr-defined]
    assert legend_texts(front) == legend_texts(sizes) == ["second"]


def test_points_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="no method with a point"):
        plots.plot_front({"rq": []}, ax=new_axes())
    for point in ((0.0, 0.5), (float("nan"), 0.5), (0.1, 1.5)):
        with pytest.raises(ValueError, match="points of 'rq' must be an error above 0 and a recall of 0 to 1, got"):
            plots.plot_front({"rq": [point]}, ax=new_axes())
