from __future__ import annotations

import numpy as np
import pytest

from prodige.learning.engines import Engines, Prepared

TAILS, HEADS = np.array([0, 1, 0], np.int32), np.array([1, 2, 2], np.int32)
WEIGHTS = np.array([1.0, 1.0, 5.0], np.float32)


def distance(prepared: Prepared) -> float:
    return float(prepared.engine.distances(np.array([0], np.int32), None, 1)[0, 2])


def test_an_engine_stays_while_edges_and_weights_do() -> None:
    engines = Engines(3, 3)
    some = np.array([0, 2])
    all_edges, kept = engines.prepare(TAILS, HEADS, WEIGHTS), engines.prepare(TAILS, HEADS, WEIGHTS, some)
    assert (distance(all_edges), distance(kept)) == (2, 5)
    assert engines.prepare(TAILS, HEADS, WEIGHTS.copy()) is all_edges
    assert engines.prepare(TAILS, HEADS, WEIGHTS, some.copy()) is kept
    engines.clear()
    assert engines.prepare(TAILS, HEADS, WEIGHTS) is not all_edges


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_weights_and_other_edges_are_noticed(dtype: type) -> None:
    engines = Engines(3, 3)
    engines.prepare(TAILS, HEADS, WEIGHTS)
    changed = engines.prepare(TAILS, HEADS, np.array([1, 9, 5], dtype))
    assert distance(changed) == 5
    assert changed.weights.dtype == dtype
    first = engines.prepare(TAILS, HEADS, WEIGHTS, np.array([0, 1]))
    assert (distance(first), distance(engines.prepare(TAILS, HEADS, WEIGHTS, np.array([1, 2])))) == (2, 5)
