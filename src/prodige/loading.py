"""Opening a saved file as what it holds: a graph, a product of graphs, a compressor, a recommender or a text model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from prodige.graph import container
from prodige.graph.atomic import StrPath, as_text
from prodige.threads import count_threads

if TYPE_CHECKING:
    from prodige.compression.compressor import DistanceCompressor
    from prodige.graph.graph import Graph
    from prodige.graph.product import ProductGraph
    from prodige.recommendation.recommender import GraphRecommender
    from prodige.text.classifier import GraphTextClassifier

Saved: TypeAlias = "Graph | ProductGraph | DistanceCompressor | GraphRecommender | GraphTextClassifier"

# What makes an object of a file's contents, by the kind of the file; imported when there is such a file.
_MAKERS = {
    "graph": "prodige.graph.file:graph_of",
    "product": "prodige.graph.file:product_of",
    "compressor": "prodige.compression.compressor:DistanceCompressor._from_contents",
    "recommender": "prodige.recommendation.recommender:GraphRecommender._from_contents",
    "text": "prodige.text.classifier:GraphTextClassifier._from_contents",
}


class Loaded(NamedTuple):
    """What a file holds, together with what it says of itself."""

    model: Saved
    description: container.Description


def load(path: StrPath, n_jobs: int | None = None) -> Saved:
    """Open a ``.prodige`` file as what it holds. Nothing in the file is trusted or run.

    Parameters
    ----------
    path : str or path-like
    n_jobs : int, optional
        Threads of the model; all processors when left out. A graph has none of its own.

    Returns
    -------
    Graph, ProductGraph, DistanceCompressor, GraphRecommender or GraphTextClassifier
        Each has a ``load`` of its own, which refuses the other kinds.

    Raises
    ------
    prodige.graph.container.FileFormatError
        If the file is damaged, of a newer version, or something else. It is a ``ValueError``.

    Examples
    --------
    >>> import tempfile
    >>> import prodige
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     prodige.Graph.from_edges([0, 1], [1, 2], [2.0, 1.0]).save(f"{directory}/three.prodige")
    ...     prodige.load(f"{directory}/three.prodige")
    Graph(n_items=3, n_hubs=0, n_edges=2, numbers_per_item=2.333)
    """
    return load_described(path, n_jobs).model


def kind_of(model: Saved) -> str:
    """Return the kind of the file that :func:`load` would get such an object from.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.loading import kind_of
    >>> kind_of(Graph.from_edges([0], [1], [2.0]))
    'graph'
    """
    kinds = {name: kind for kind, (_, name) in container.KINDS.items()}
    return kinds[type(model).__name__]


def load_described(path: StrPath, n_jobs: int | None = None) -> Loaded:
    """Open a file together with what it says of itself: they belong together, whoever replaces the file.

    Parameters
    ----------
    path : str or path-like
    n_jobs : int, optional
        As of :func:`load`.

    Examples
    --------
    >>> import tempfile
    >>> from prodige import Graph
    >>> from prodige.loading import load_described
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     Graph.from_edges([0], [1], [2.0]).save(f"{directory}/pair.prodige", metadata={"made by": "Ada"})
    ...     graph, description = load_described(f"{directory}/pair.prodige")
    >>> graph.distance(0, 1), description.kind, description.metadata
    (2.0, 'graph', {'made by': 'Ada'})
    """
    count_threads(n_jobs)
    contents = container.read(path)
    if contents.kind not in _MAKERS:
        found = container.KINDS[contents.kind][0]
        raise container.FileFormatError(f"{as_text(path)!r}: it holds {found}; {container.GOING_ON}")
    module, _, name = _MAKERS[contents.kind].partition(":")
    make: Any = import_module(module)
    for part in name.split("."):
        make = getattr(make, part)
    return Loaded(container.make_of(path, contents, lambda contents: make(contents, n_jobs)), contents.description)
