"""Choosing engines."""

from __future__ import annotations

import numpy as np
import pytest

from prodige import _core
from prodige.graph.engine import Engine
from strategies import hub_graph, point_graph


def test_small_calls_stay_on_one_thread() -> None:
    edges = point_graph(100)
    engine = Engine(_core.Topology(edges.n_vertices, edges.i, edges.j), edges.weight, edges.n_items)
    assert engine.threads(8, 1) == 1
    assert engine.threads(8, 10) == 1
    assert engine.threads(2, 10_000) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_follows_the_weights(dtype: type) -> None:
    for edges, name in ((point_graph(100), "general"), (hub_graph(), "hubs")):
        topology = _core.Topology(edges.n_vertices, edges.i, edges.j)
        engine = Engine(topology, edges.weight.astype(dtype), edges.n_items)
        assert engine.name == name
        assert Engine(topology, edges.weight.astype(dtype), edges.n_items, layout=None).name == "general"
        assert engine.distances(np.array([0], np.int32), None, 1).dtype == dtype
