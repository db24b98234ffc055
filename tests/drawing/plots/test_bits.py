"""Error against size: the rows of tables and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from canvases import draw, legend_texts, new_axes
from prodige.drawing import plots
from prodige.metric.evaluation import Report


def table(budget: int) -> dict[str, Any]:
    rows = [
        {"method": "constant", "bits_per_item": 0.003, "mse": [0.5]},
        {"method": "mds", "bits_per_item": 32 * budget, "mse": [0.4 / budget, 0.5 / budget]},
        {"method": "graph", "bits_per_item": 36 * budget, "mse": [0.1 / budget]},
        {"method": "poincare", "bits_per_item": None, "mse": []},
    ]
    return {"dataset": "toy", "budget": budget, "rows": rows}


def test_tables() -> None:
    ax = plots.plot_bits([table(8), table(4)], ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["graph", "MDS", "one constant"]
    graph = ax.containers[0].lines[0]  # type: ignore[attr-defined]
    assert np.allclose(np.asarray(graph.get_xdata(), float), [144, 288])
    assert np.allclose(np.asarray(graph.get_ydata(), float), [0.025, 0.0125])
    level = ax.lines[-1]
    assert set(np.asarray(level.get_ydata()).tolist()) == {0.5}
    one = plots.plot_bits(table(4), ax=new_axes())
    assert legend_texts(one) == legend_texts(ax)


def test_measured_tables_can_be_drawn() -> None:
    results = sorted((Path(__file__).parents[3] / "docs" / "results").glob("table1-*.json"))
    assert results
    for path in results:
        ax = plots.plot_bits(json.loads(path.read_text()), ax=new_axes())
        assert ("MDS" if path.stem.endswith("-vectors") else "graph") in legend_texts(ax)


def test_reports() -> None:
    report = Report(0.25, 0.1, 1.0, 0.9, 0.5, k=10, n_items=100, n_sources=100, n_pairs=9900)
    ax = plots.plot_bits([{"method": "$x$ <i>", "bits_per_item": 64, "mse": report}], ax=new_axes())
    draw(ax)
    assert legend_texts(ax) == ["$x$ <i>"]
    (drawn,) = ax.containers[0].lines[0].get_ydata()  # type: ignore[attr-defined]
    assert float(drawn) == pytest.approx(0.25)


def test_results_that_cannot_be_drawn() -> None:
    row = {"method": "graph", "bits_per_item": 64, "mse": 0.1}
    for rows, message in (
        ([], "no row with an error"),
        ([row | {"mse": []}], "no row with an error"),
        ([row | {"mse": -1.0}], "mse of 'graph' must be finite and above 0"),
        ([row | {"bits_per_item": float("nan")}], "bits_per_item of 'graph' must be"),
        ([{"method": "graph"}], "must have 'bits_per_item', 'mse'"),
        ([3], "must have 'method'"),
    ):
        with pytest.raises(ValueError, match=message):
            plots.plot_bits(rows, ax=new_axes())
    with pytest.raises(TypeError, match="results must be rows"):
        plots.plot_bits(3, ax=new_axes())
