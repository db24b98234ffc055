"""What the tables of the paper share."""

from __future__ import annotations

import pytest

from prodige.reproduce.tables import Plan, Row, fit_rows, result, row_notes

LABELS = {"star": "best star", "graph": "graph", "poincare": "Poincaré"}


def fit(row: Row, seed: int) -> None:
    if row.method == "poincare":
        raise ImportError("pip install geoopt", name="geoopt")
    row.seconds.append(float(seed))


def test_rows() -> None:
    said: list[str] = []
    prepared: list[str] = []
    plan = Plan(["graph", "poincare", "star"], 2, 1, said.append)
    rows = fit_rows(plan, "toy", LABELS, {"graph"}, Row, fit, lambda row: prepared.append(row.method))
    assert prepared == ["star", "graph", "poincare"]  # always in this order
    assert [row.seconds for row in rows] == [[0.0], [0.0, 1.0], []]
    assert said == [
        "toy: best star, seed 0",
        "toy: graph, seed 0",
        "toy: graph, seed 1",
        "toy: Poincaré, seed 0",
    ]
    table = result("table9", plan, rows, {"budget": 4}, dataset="toy")
    assert (table["dataset"], table["n_seeds"], len(table["rows"])) == ("toy", 2, 3)
    command = "prodige reproduce table9 --budget 4 --seeds 2 --methods star,graph,poincare"
    assert table["origin"]["command"] == command
    assert row_notes(table["rows"], LABELS) == ["Poincaré: left out: pip install geoopt"]


def test_what_is_ours_must_be_there() -> None:
    def broken(row: Row, seed: int) -> None:
        raise ImportError("no such part", name="prodige.parts")

    with pytest.raises(ImportError, match="no such part"):
        fit_rows(Plan(["star"]), "toy", LABELS, set(), Row, broken)


def test_unknown_methods() -> None:
    with pytest.raises(ValueError, match="methods must be some of star, graph, poincare, got 'umap'"):
        fit_rows(Plan(["umap"]), "toy", LABELS, set(), Row, fit)
