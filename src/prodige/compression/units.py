"""From the unit of a fit back to that of the data.

A fit measures distances in a unit in which their squares fit into single precision
(:func:`prodige.metric.space.natural_unit`): 1 nearly always. Users hear and get all in the unit of their data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prodige.graph.graph import Graph
from prodige.progress import Callback, Record


def rescale_record(record: Record, unit: float) -> Record:
    """Return a record with losses and penalties in squared distances of the data.

    Examples
    --------
    >>> from prodige.compression.units import rescale_record
    >>> from prodige.progress import Record
    >>> rescale_record(Record(step=0, progress=0.0, loss=3.0, seconds=0.1), unit=10.0).loss
    300.0
    """
    square = unit**2
    lambda_ = None if record.lambda_ is None else record.lambda_ * square
    return replace(record, loss=record.loss * square, lambda_=lambda_)


def rescale_callbacks(callbacks: Sequence[Callback], unit: float) -> Sequence[Callback]:
    """Return callbacks that are told of losses in squared distances of the data."""
    if unit == 1:
        return callbacks

    def rephrased(callback: Callback) -> Callback:
        return lambda record: callback(rescale_record(record, unit))

    return [rephrased(callback) for callback in callbacks]


def rescale_graph(graph: Graph, unit: float) -> Graph:
    """Return a graph with weights in the unit of the data.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.compression.units import rescale_graph
    >>> rescale_graph(Graph.from_edges([0, 1], [1, 2], [1.0, 2.0]), unit=10.0).distance(0, 2)
    30.0
    """
    edges = graph.edges
    return Graph.from_edges(edges.i, edges.j, edges.weight * unit, n_vertices=graph.n_vertices, n_items=graph.n_items)
