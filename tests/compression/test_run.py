"""One run by itself; test_compressor.py and test_sampling.py say what comes of fits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from prodige import DistanceCompressor, Graph, estimate_memory
from prodige.compression.run import Learned, Run
from prodige.progress import Record

ROWS = np.random.default_rng(0).normal(size=(40, 3))


def test_a_run_leaves_its_model_unfitted() -> None:
    model = DistanceCompressor(n_hubs=3, random_state=0, callbacks=[lambda _: True])
    fitted = Run(model, time.perf_counter()).fit(ROWS)
    assert fitted.learned.stopped == "callback"
    assert fitted.unit == 1
    np.testing.assert_array_equal(fitted.anchor_rows, ROWS[fitted.anchors])
    assert {name for name in vars(model) if name.endswith("_")} == {"n_features_in_"}


@pytest.mark.parametrize("given", [{}, {"bits_per_item": 40}, {"objective": "neighbors", "memory_limit": "1GB"}])
def test_estimates_are_those_that_users_are_told(given: dict[str, Any]) -> None:
    assert Run(DistanceCompressor(**given), 0.0).estimate(100_000, 9) == estimate_memory(100_000, 9, **given)


def test_what_was_learned_goes_back_to_the_unit_of_the_data() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    learned = Learned(graph, "l0", [Record(0, 0.0, 3.0, 0.1)], "finished", lambda_=0.5)
    assert learned.rescaled(1.0) is learned
    found = learned.rescaled(4.0)
    assert (found.graph.distance(0, 2), found.history[0].loss, found.lambda_) == (12.0, 48.0, 8.0)
    assert (found.structure, found.stopped, found.is_unspent) == ("l0", "finished", False)
