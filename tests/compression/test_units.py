from __future__ import annotations

import numpy as np

from prodige import Graph
from prodige.compression.units import rescale_callbacks, rescale_graph, rescale_record
from prodige.progress import Record

RECORD = Record(step=3, progress=0.5, loss=2.0, seconds=1.0, n_edges=7, lambda_=0.25)


def test_squares_grow_with_the_square_and_all_else_stays() -> None:
    found = rescale_record(RECORD, 2.0**40)
    assert (found.loss, found.lambda_) == (2.0**81, 2.0**78)
    assert found.known() | {"loss": 2.0, "lambda_": 0.25} == RECORD.known()
    assert rescale_record(Record(0, 0.0, 1.0, 0.0), 2.0).lambda_ is None


def test_each_callback_hears_in_the_unit_of_the_data_and_is_listened_to() -> None:
    heard: list[float] = []
    callbacks = [lambda record: heard.append(record.loss), lambda record: record.loss == 18]
    told = rescale_callbacks(callbacks, 3.0)
    assert [callback(RECORD) for callback in told] == [None, True]
    assert heard == [18.0]
    assert rescale_callbacks(callbacks, 1.0) is callbacks


def test_distances_grow_with_the_unit() -> None:
    graph = Graph.from_edges([0, 1, 1], [3, 3, 2], [1.0, 2.0, 0.5], n_items=3)
    found = rescale_graph(graph, 2.0**70)
    assert (found.n_items, found.n_vertices) == (3, 4)
    np.testing.assert_array_equal(found.distances() / np.float32(2.0**70), graph.distances())
