"""AnchorEmbedding: a graph in the place of an embedding layer.

An item is represented by its distances to K anchors, which are vertices of the graph like any other: K coordinates, of
which only a few edges are stored and learned. The layers above need the items of one batch, so that is all that is
searched: the anchors' trees over the hubs, and from there each item's own edges.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.nn import functional

from prodige._validation import check_integer
from prodige.graph.atomic import StrPath
from prodige.graph.engine import AnchorTrees, Engine
from prodige.graph.graph import Graph
from prodige.learning import compiled
from prodige.learning.anchor_layout import AnchorLayout
from prodige.learning.anchors_from_coordinates import attach_to_anchors
from prodige.learning.anchors_from_vectors import attach_to_hubs
from prodige.learning.autograd import Parameters, Paths, spread
from prodige.learning.embedding import GraphEmbedding
from prodige.threads import one_thread

# First step of the descent towards distances, relative to their mean; and towards coordinates, to their mean square.
_RATE = 0.002
_COORDINATE_RATE = 0.03
_ROWS_ARE_PATHS = "rows are lengths of paths that share edges, and none can be rescaled alone; normalise what comes out"
_REFUSED = {
    "max_norm": _ROWS_ARE_PATHS,
    "norm_type": _ROWS_ARE_PATHS,
    "sparse": "gradients are of edges, so give it to the graph, GraphEmbedding(..., sparse=True)",
    "dtype": "numbers are of the graph's type; give it to the graph, GraphEmbedding(..., dtype=...), or call .double()",
    "device": "shortest paths are searched on the CPU; move what comes out with .to(device)",
}


class AnchorEmbedding(compiled.Operable):
    """Distances of items to anchors, called as :class:`torch.nn.Embedding` is.

    Raw distances are much alike: what tells items apart is the little by which they differ. The layer therefore takes
    the mean distance of each anchor away and divides by one number for all, both measured once, when it is made.

    Parameters
    ----------
    graph : GraphEmbedding
        Its items are what is embedded; its last ``n_anchors`` vertices are the anchors.
    n_anchors : int, optional
        Number of anchors; all hubs of the graph when left out.
    padding_idx : int, optional
        Item whose row is zero and learns nothing.
    normalize : bool
        Centre and scale the distances. False gives plain distances.
    scale_grad_by_freq : bool
        Divide the gradient of each item's row by how often the item is in the batch, as ``nn.Embedding`` does.
    **refused
        Other arguments of ``nn.Embedding`` have no meaning here; an error says what to do instead.

    Attributes
    ----------
    num_embeddings, embedding_dim : int
        Numbers of items and of anchors.

    Shapes:
        - input ``[...]``: item ids, any shape
        - output ``[..., K]``

    Examples
    --------
    Five items on a line between two anchors:

    >>> import torch
    >>> from prodige import GraphEmbedding
    >>> from prodige.learning.anchors import AnchorEmbedding
    >>> i, j, weight = [0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 6, 5], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    >>> graph = GraphEmbedding(i, j, weight, probability=1.0, n_items=5)
    >>> AnchorEmbedding(graph, normalize=False)(torch.tensor([[0, 4], [1, 3]]))
    tensor([[[1., 5.],
             [5., 1.]],
    <BLANKLINE>
            [[2., 4.],
             [4., 2.]]], grad_fn=<EmbeddingBackward0>)
    """

    center: torch.Tensor
    scale: torch.Tensor

    def __init__(
        self,
        graph: GraphEmbedding,
        n_anchors: int | None = None,
        padding_idx: int | None = None,
        normalize: bool = True,
        scale_grad_by_freq: bool = False,
        **refused: Any,
    ) -> None:
        super().__init__()
        check_refused(refused)
        if not isinstance(graph, GraphEmbedding):
            raise TypeError(
                f"graph must be a GraphEmbedding, got {type(graph).__name__}; AnchorEmbedding.from_vectors and "
                "from_coordinates make one of a table, from_graph of a Graph"
            )
        if n_anchors is None:
            n_anchors = graph.n_vertices - graph.n_items
            if n_anchors == 0:
                raise ValueError("graph has no hubs to be anchors; give n_anchors to use its last items")
        check_integer("n_anchors", n_anchors, 1, graph.n_vertices)
        if padding_idx is not None:
            check_integer("padding_idx", padding_idx, -graph.n_items, graph.n_items - 1)
            padding_idx %= graph.n_items
        self.graph = graph
        self.num_embeddings = graph.n_items
        self.embedding_dim = n_anchors
        self.padding_idx = padding_idx
        self.scale_grad_by_freq = scale_grad_by_freq
        self._trees: tuple[Engine, AnchorTrees] | None = None
        self._table: tuple[Engine, torch.Tensor] | None = None
        self.register_buffer("center", torch.zeros(n_anchors))
        self.register_buffer("scale", torch.ones(()))
        if normalize:
            self._measure()

    @classmethod
    @one_thread()
    def from_vectors(
        cls,
        X: ArrayLike,
        n_anchors: int = 100,
        numbers_per_item: float = 10.0,
        n_hubs: int | None = None,
        sample_weight: ArrayLike | None = None,
        padding_idx: int | None = None,
        n_steps: int = 50,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> AnchorEmbedding:
        """Make a layer whose distances are near those between vectors and anchors among them.

        Parameters
        ----------
        X : array-like, shape [N, D]
            Vectors of the items.
        n_anchors, numbers_per_item, n_hubs, sample_weight, random_state, n_jobs
            See :func:`prodige.learning.anchors_from_vectors.attach_to_hubs`.
        padding_idx : int, optional
            Item whose row is zero and learns nothing.
        n_steps : int
            Steps of gradient descent towards the distances of the vectors; 0 leaves the graph as it was built.

        Examples
        --------
        >>> import numpy as np
        >>> import torch
        >>> from prodige.learning.anchors import AnchorEmbedding
        >>> X = np.random.RandomState(0).normal(size=(500, 8))
        >>> layer = AnchorEmbedding.from_vectors(X, n_anchors=10, random_state=0)
        >>> layer(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 10])
        """
        check_integer("n_steps", n_steps, 0, 2**31 - 1)
        graph, target = attach_to_hubs(X, n_anchors, numbers_per_item, n_hubs, sample_weight, random_state, n_jobs)
        layer = cls(graph, n_anchors, padding_idx, normalize=False)
        layer._approach(target, sample_weight, n_steps, _RATE * float(target.mean()))
        layer._measure()
        return layer

    @classmethod
    @one_thread()
    def from_coordinates(
        cls,
        coordinates: ArrayLike,
        numbers_per_item: float = 5.0,
        n_hubs: int | None = None,
        sample_weight: ArrayLike | None = None,
        padding_idx: int | None = None,
        n_steps: int = 50,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> AnchorEmbedding:
        """Make a layer whose rows are near those given, as :meth:`torch.nn.Embedding.from_pretrained` does exactly.

        There is an anchor for each coordinate, so far away that the distance to it is the coordinate but for a
        constant: see :mod:`prodige.learning.anchors_from_coordinates`. What all coordinates of an item have in common
        is kept best; where the layer above can undo it, turn vectors by
        :func:`prodige.learning.anchors_from_coordinates.directions` first.

        Parameters
        ----------
        coordinates : array-like, shape [N, K]
        numbers_per_item, n_hubs, sample_weight, random_state, n_jobs, verbose
            See :func:`prodige.learning.anchors_from_coordinates.attach_to_anchors`.
        padding_idx : int, optional
            Item whose row is zero and learns nothing.
        n_steps : int
            Steps of gradient descent towards the coordinates; 0 leaves the graph as it was built.

        Examples
        --------
        >>> import numpy as np
        >>> import torch
        >>> from prodige.learning.anchors import AnchorEmbedding
        >>> X = np.random.RandomState(0).normal(size=(500, 4)).astype(np.float32)
        >>> layer = AnchorEmbedding.from_coordinates(X, random_state=0)
        >>> rows = layer(torch.arange(500)).detach().numpy()
        >>> bool(((rows - X) ** 2).mean() < 0.08)
        True
        """
        check_integer("n_steps", n_steps, 0, 2**31 - 1)
        graph, offset, scale = attach_to_anchors(
            coordinates, numbers_per_item, n_hubs, sample_weight, random_state, n_jobs, verbose
        )
        target = np.asarray(coordinates, dtype=np.float32)
        layer = cls(graph, target.shape[1], padding_idx, normalize=False)
        layer._approach(target * np.float32(scale) + np.float32(offset), sample_weight, n_steps, _COORDINATE_RATE)
        layer.center.fill_(offset)
        layer.scale.fill_(scale)
        return layer

    @classmethod
    def from_graph(
        cls,
        graph: Graph | StrPath,
        n_anchors: int | None = None,
        padding_idx: int | None = None,
        normalize: bool = True,
    ) -> AnchorEmbedding:
        """Make a layer of a graph that is there, or saved: its weights can be learned further, its edges stay.

        Examples
        --------
        >>> from prodige import Graph
        >>> from prodige.learning.anchors import AnchorEmbedding
        >>> graph = Graph.from_edges([0, 1, 2], [3, 3, 4], [1.0, 2.0, 1.0], n_vertices=5, n_items=3)
        >>> AnchorEmbedding.from_graph(Graph.from_edges([0, 1], [2, 2], [1.0, 2.0], n_items=2))
        AnchorEmbedding(
          2, 1
          (graph): GraphEmbedding(n_items=2, n_hubs=1, n_edges=2, estimator='toggle')
        )
        """
        if not isinstance(graph, Graph):
            graph = Graph.load(graph)
        edges = graph.edges
        learnable = GraphEmbedding(edges.i, edges.j, edges.weight, 1.0, graph.n_vertices, graph.n_items)
        return cls(learnable, n_anchors, padding_idx, normalize)

    def freeze(self) -> FrozenAnchorEmbedding:
        """Return a layer for inference: the edges with probability 0.5 or more, and nothing to learn.

        Examples
        --------
        >>> import torch
        >>> from prodige import GraphEmbedding
        >>> from prodige.learning.anchors import AnchorEmbedding
        >>> layer = AnchorEmbedding(GraphEmbedding([0, 1], [2, 2], [1.0, 3.0], 1.0, n_items=2))
        >>> layer.freeze()(torch.tensor([0, 1]))
        tensor([[-1.],
                [ 1.]])
        """
        return FrozenAnchorEmbedding(
            self.graph.freeze(),
            self.embedding_dim,
            self.center.numpy(),
            float(self.scale),
            float(self.graph.unreachable.detach()),
            self.padding_idx,
        )

    @property
    def anchors(self) -> NDArray[np.int32]:
        """Vertices the distances are taken to, shape [K]."""
        return AnchorLayout.of(self.graph, self.embedding_dim).anchors

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as nn.Embedding calls it
        """Return the rows of items, shape [..., K]."""
        if torch.compiler.is_compiling():
            return self._call(input)
        ids = check_ids(input, self.num_embeddings)
        if not torch.is_grad_enabled():
            table = self._rows_of_all()
            if table is not None:
                return functional.embedding(ids, table)
        unique, inverse = torch.unique(ids, return_inverse=True)
        rows = self._normalized(self._distances(unique.numpy().astype(np.int32)))
        if self.padding_idx is not None:
            rows = rows.masked_fill((unique == self.padding_idx).unsqueeze(1), 0.0)
        return functional.embedding(inverse, rows, scale_grad_by_freq=self.scale_grad_by_freq)

    def _distances(self, items: NDArray[np.int32]) -> torch.Tensor:
        """Return plain distances of distinct items to the anchors, shape [U, K], differentiable."""
        search, is_from_anchors = self._search(items, self.graph.draw_seed())
        distances = self.graph._distances(search)
        return distances.t() if is_from_anchors else distances

    def _search(self, items: NDArray[np.int32], seed: int | None) -> tuple[Paths, bool]:
        """Search between the anchors and distinct items; return whether the rows are anchors."""
        graph, anchors = self.graph, self.anchors
        prepared = graph.prepared() if seed is None else None
        if prepared is not None and prepared.engine.are_hubs(anchors):
            threads = prepared.engine.threads(graph.n_jobs, anchors.size)
            trees = self._grow(prepared.engine)
            return AnchorSearch(trees, prepared.edges, graph.n_edges, items, graph.sparse, threads), True
        # The graph has no direction: a search from either side finds the same, and one from the fewer is cheaper.
        if anchors.size <= items.size:
            return graph.search(anchors, items, seed), True
        return graph.search(items, anchors, seed), False

    # -- as an operator ----------------------------------------------------------------------------------------------

    def draw_seed(self) -> int | None:
        """Return what the next random graphs are drawn by; None where no edge is random."""
        return self.graph.draw_seed()

    def _call(self, ids: torch.Tensor) -> torch.Tensor:
        """Return rows by the operator that ``torch.compile`` knows."""
        graph = self.graph
        compiled.check_dense(graph.sparse)
        parameters = Parameters(graph.theta_w, graph.theta_b, graph.unreachable)
        return compiled.call(self, [ids, self.center, self.scale], parameters, (*ids.shape, self.embedding_dim))

    def _answer(
        self, inputs: Sequence[torch.Tensor], parameters: Parameters, seed: int | None, learning: bool
    ) -> tuple[torch.Tensor, compiled.Tape | None]:
        ids = check_ids(inputs[0], self.num_embeddings)
        if not learning:
            table = self._rows_of_all()
            if table is not None:
                return functional.embedding(ids, table), None
        unique, inverse = torch.unique(ids, return_inverse=True)
        search, is_from_anchors = self._search(unique.numpy().astype(np.int32), seed)
        distances, tape = compiled.read(search, parameters.unreachable)
        rows = self._normalized(distances.t() if is_from_anchors else distances)
        padding = None if self.padding_idx is None else (unique == self.padding_idx).unsqueeze(1)
        if padding is not None:
            rows = rows.masked_fill(padding, 0.0)
        rest = RowsTape(tape, is_from_anchors, self.scale, padding, inverse, len(rows), self.scale_grad_by_freq)
        return functional.embedding(inverse, rows), rest if learning else None

    def _holding(self, inputs: Sequence[torch.Tensor], parameters: Parameters, again: bool) -> Self:
        graph = self.graph._holding([], parameters, again)
        own = {"center": self.center, "scale": self.scale}
        if graph is self.graph and compiled.are_same(zip(own.values(), inputs[1:], strict=True)):
            return self
        other = copy.copy(self)
        other._modules = self._modules | {"graph": graph}
        other._buffers = self._buffers | dict(zip(own, inputs[1:], strict=True))
        return other

    def _grow(self, engine: Engine) -> AnchorTrees:
        """Return the anchors' trees over the hubs; those of the last call if the engine is the same."""
        known = self._trees  # read once: another thread may set it meanwhile
        if known is None or known[0] is not engine:
            trees = engine.anchor_trees(self.anchors, self.graph.n_jobs)
            self._trees = engine, trees
            return trees
        return known[1]

    def _rows_of_all(self) -> torch.Tensor | None:
        """Return the rows of all items, searched again only if weights changed; None while edges are random."""
        prepared = self.graph.prepared()
        if prepared is None:
            return None
        known = self._table  # read once: another thread may set it meanwhile
        if known is None or known[0] is not prepared.engine:
            table = self._normalized(self._distances(np.arange(self.num_embeddings, dtype=np.int32)))
            if self.padding_idx is not None:
                table[self.padding_idx] = 0
            self._table = prepared.engine, table
            return table
        return known[1]

    def _normalized(self, distances: torch.Tensor) -> torch.Tensor:
        return (distances - self.center) / self.scale

    def _approach(
        self, target: NDArray[np.float32], sample_weight: ArrayLike | None, n_steps: int, rate: float
    ) -> None:
        """Move the weights so that distances come nearer to the target, shape [N, K]; the rate falls to 0."""
        goal = torch.tensor(target)
        share = torch.ones(len(goal)) if sample_weight is None else torch.as_tensor(sample_weight)
        share = (share / share.sum()).to(goal.dtype).unsqueeze(1)
        optimizer = torch.optim.Adam([self.graph.theta_w], lr=rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(n_steps, 1))
        items = np.arange(len(target), dtype=np.int32)
        for _ in range(n_steps):
            optimizer.zero_grad()
            (share * (self._distances(items) - goal).square()).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"

    def _measure(self) -> None:
        """Set the centre of each anchor's distances and the one scale, over all items but padding."""
        with torch.no_grad():
            training = self.graph.training
            self.graph.eval()
            distances = self._distances(np.arange(self.num_embeddings, dtype=np.int32))
            self.graph.train(training)
            if self.padding_idx is not None:
                distances = distances[torch.arange(self.num_embeddings) != self.padding_idx]
            if distances.numel():
                self.center = distances.mean(dim=0)
                spread = float((distances - self.center).square().mean().sqrt())
                self.scale.fill_(spread if spread > 0 else 1.0)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._table = None  # of another type now
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any) -> None:
        self._table = None  # centre and scale may be others, with the weights as they were
        super()._load_from_state_dict(*args)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {**self.__dict__, "_waiting": {}, "_trees": None, "_table": None}


class FrozenAnchorEmbedding(nn.Module):
    """An :class:`AnchorEmbedding` that learns no more: a graph, and a table of its distances made at the first call.

    Usually made by :meth:`AnchorEmbedding.freeze`. It has no parameters; a graph, not a table, is what is stored.

    Parameters
    ----------
    graph : Graph
    n_anchors : int
        Its last vertices are the anchors.
    center : array-like, shape [K]
    scale : float
        Rows are (distances - center) / scale.
    unreachable : float
        Stands for the distance where there is no path.
    padding_idx : int, optional
        Item whose row is zero.

    Examples
    --------
    >>> import torch
    >>> from prodige import Graph
    >>> from prodige.learning.anchors import FrozenAnchorEmbedding
    >>> graph = Graph.from_edges([0, 1], [2, 2], [1.0, 3.0], n_items=2)
    >>> FrozenAnchorEmbedding(graph, 1, center=[2.0])(torch.tensor([1, 0]))
    tensor([[ 1.],
            [-1.]])
    """

    center: torch.Tensor
    scale: torch.Tensor

    def __init__(
        self,
        graph: Graph,
        n_anchors: int,
        center: ArrayLike = 0.0,
        scale: float = 1.0,
        unreachable: float = 0.0,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        check_integer("n_anchors", n_anchors, 1, graph.n_vertices)
        self.graph = graph
        self.num_embeddings = graph.n_items
        self.embedding_dim = n_anchors
        self.unreachable = unreachable
        self.padding_idx = padding_idx
        self.register_buffer("center", torch.as_tensor(np.array(center, dtype=np.float32)).expand(n_anchors).clone())
        self.register_buffer("scale", torch.tensor(float(scale)))
        self._table: torch.Tensor | None = None

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as nn.Embedding calls it
        """Return the rows of items, shape [..., K]."""
        ids = check_ids(input, self.num_embeddings)
        table = self._table  # read once: another thread may set it meanwhile
        if table is None:
            anchors = AnchorLayout.of(self.graph, self.embedding_dim).anchors
            distances = torch.from_numpy(self.graph.distances(anchors).T)
            distances = torch.where(torch.isinf(distances), self.unreachable, distances)
            table = (distances - self.center) / self.scale
            if self.padding_idx is not None:
                table[self.padding_idx] = 0
            self._table = table
        return functional.embedding(ids, table)

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {self.graph!r}"

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._table = None  # of another type now
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any) -> None:
        self._table = None  # centre and scale may be others
        super()._load_from_state_dict(*args)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {**self.__dict__, "_table": None}


@dataclass(eq=False)
class AnchorSearch:
    """Grown trees, and the items that are to choose among their own edges; rows are anchors."""

    trees: AnchorTrees
    edges: NDArray[np.int64] | None  # candidate edges behind those of the trees; None: the same
    n_edges: int  # candidate edges
    items: NDArray[np.int32]
    sparse: bool
    n_jobs: int
    _arcs: Any = None

    def read(self) -> NDArray[Any]:
        """Let each item choose; return the distances, infinite where there is no path, shape [K, U]."""
        distances, self._arcs = self.trees.distances(self.items, self.n_jobs)
        return distances

    def gradients(
        self, incoming: NDArray[Any], parameters: Parameters, needs: tuple[bool, bool]
    ) -> tuple[NDArray[Any] | None, None]:
        """Follow each item's edge, then the tree it is attached to."""
        if not needs[0]:
            return None, None
        by_weight = self.trees.backward(self.items, incoming, self._arcs, self.n_jobs)
        return spread(by_weight, self.edges, self.n_edges) * torch.sigmoid(parameters.theta_w).numpy(), None


@dataclass(eq=False)
class RowsTape:
    """What the backward pass of :class:`AnchorEmbedding` as an operator needs: its steps, in reverse."""

    search: compiled.SearchTape
    is_from_anchors: bool
    scale: torch.Tensor
    padding: torch.Tensor | None
    inverse: torch.Tensor
    n_rows: int
    scale_grad_by_freq: bool

    def gradients(self, gradient: torch.Tensor, parameters: Parameters, needs: Sequence[bool]) -> compiled.Gradients:
        """Return the gradients of parameters by that of rows."""
        by_rows = torch.ops.aten.embedding_dense_backward(
            gradient, self.inverse, self.n_rows, -1, self.scale_grad_by_freq
        )
        if self.padding is not None:
            by_rows = by_rows.masked_fill(self.padding, 0.0)
        by_distances = (by_rows / self.scale).to(parameters.theta_w.dtype)
        return self.search.gradients(by_distances.t() if self.is_from_anchors else by_distances, parameters, needs)


def check_refused(options: dict[str, Any]) -> None:
    """Refuse arguments of :class:`torch.nn.Embedding` that make no sense for a graph, with what to do instead."""
    for name in options:
        if name not in _REFUSED:
            raise TypeError(f"AnchorEmbedding has no argument {name!r}")
        raise TypeError(f"{name} = {options[name]!r} is not for an AnchorEmbedding: {_REFUSED[name]}")


def check_ids(ids: Any, n_items: int) -> torch.Tensor:
    """Return ids as int64, refusing what :class:`torch.nn.Embedding` refuses."""
    if not isinstance(ids, torch.Tensor):
        raise TypeError(f"input must be a tensor of item ids, got {type(ids).__name__}; use torch.as_tensor")
    if ids.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise TypeError(f"input must hold integers, got {ids.dtype}; convert with input.long()")
    numbers: torch.Tensor = ids.long()
    if numbers.numel() and (int(numbers.min()) < 0 or int(numbers.max()) >= n_items):
        bad = numbers[(numbers < 0) | (numbers >= n_items)]
        raise IndexError(
            f"index out of range in self: input has {bad.numel()} ids outside 0 to {n_items - 1}, the first is {bad[0]}"
        )
    return numbers
