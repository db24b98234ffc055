"""ProductEmbedding: a product of graphs whose factors are learned.

A few small graphs stand for one with as many vertices as there are tuples of their hubs: see
:mod:`prodige.graph.product` for the idea and the formula. Here the factors are learnable, and so is the length that an
item adds to its distances; which hubs an item is at is given. A batch needs a search of a factor for each different hub
that its sources are at, however many items there are: the rest is looking up and adding, which torch differentiates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn
from torch.nn import functional

from prodige.graph.factors import MAX_HUBS
from prodige.graph.product import ProductGraph
from prodige.graph.product_parts import check_codes, check_count, check_exponent, check_places, numbers_of_places
from prodige.learning.embedding import GraphEmbedding
from prodige.learning.inputs import check_values, check_vertices
from prodige.learning.softplus import inverse_softplus


class ProductEmbedding(nn.Module):
    """A learnable product of graphs: an item is one hub in each factor, and a length of its own.

    With ``d_m`` the distance in factor ``m``, ``c_m(i)`` the hub of item ``i`` in it and ``e_i`` its length,

        D(i, j) = (e_i + e_j + Σ_m d_m(c_m(i), c_m(j)) ** power) ** (1 / gauge)        for i ≠ j

    Weights of all factors are learned, probabilities of edges that are not certain, and lengths; codes stay.

    Parameters
    ----------
    factors : iterable of GraphEmbedding
        M of them, 256 at most. Their items are the hubs, 4096 at most; hubs of their own are waypoints as ever. In
        training mode a factor samples as it does on its own, a graph for each hub: items of a batch that are at the
        same hub see the same one. The estimator ``"score"`` is not for factors.
    codes : array-like of int, shape [V, M]
        The hub of each vertex in each factor.
    lengths : float or array-like, shape [V]
        Initial lengths, 0 or more. Those of exactly 0 stay so.
    power, gauge : float
        1 to 2. Distances are a metric where ``power`` is at most ``gauge``.
    places : array-like of int, shape [N], optional
        The vertex of each item, where items may share one: they are at distance 0. Every vertex has an item. When left
        out item ``i`` is vertex ``i``.

    Shapes:
        - sources ``[S]``, targets ``[T]``: integer item ids; all items if ``targets`` is left out
        - output ``[S, T]``

    Examples
    --------
    Four corners of a rectangle are two codes each; its sides learn that the diagonal is 5 and one side 3:

    >>> import torch
    >>> from prodige import GraphEmbedding, ProductEmbedding
    >>> sides = [GraphEmbedding([0], [1], probability=1.0) for _ in range(2)]
    >>> corners = ProductEmbedding(sides, [[0, 0], [0, 1], [1, 0], [1, 1]], lengths=0.0)
    >>> optimizer = torch.optim.Adam(corners.parameters(), lr=0.1)
    >>> for step in range(300):
    ...     optimizer.zero_grad()
    ...     loss = (corners([0], [3, 1]) - torch.tensor([[5.0, 3.0]])).square().sum()
    ...     loss.backward()
    ...     optimizer.step()
    >>> corners.freeze().distances([0]).round(2)
    array([[0., 3., 4., 5.]], dtype=float32)
    """

    codes: torch.Tensor
    places: torch.Tensor | None

    def __init__(
        self,
        factors: Iterable[GraphEmbedding],
        codes: ArrayLike,
        lengths: ArrayLike = 1.0,
        power: float = 2.0,
        gauge: float = 2.0,
        places: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        graphs = check_factors(factors)
        rows = check_codes(codes, [graph.n_items for graph in graphs])
        start = check_values("lengths", lengths, len(rows), most=math.inf, owner="vertex")
        self.power, self.gauge = check_exponent("power", power), check_exponent("gauge", gauge)
        self.factors = nn.ModuleList(graphs)
        self.theta_e = nn.Parameter(torch.from_numpy(inverse_softplus(start)).to(graphs[0].theta_w.dtype))
        self.register_buffer("codes", torch.tensor(rows))
        self.register_buffer("places", None if places is None else torch.tensor(check_places(places, len(rows))))

    @classmethod
    def from_product(cls, product: ProductGraph, probability: ArrayLike = 1.0, **options: Any) -> Self:
        """Return an embedding that starts as a product that is there: compress first, then learn further.

        Factors become learnable graphs of all their edges. A factor of hubs with positions becomes the complete graph
        that it stands for: its edges are then learned one by one, and take more numbers than the positions did. Edges
        and lengths of exactly 0 stay so.

        Parameters
        ----------
        product : ProductGraph
        probability : float
            Initial probability of all edges; at 1 they are certain.
        **options
            Of :class:`~prodige.learning.embedding.GraphEmbedding`, for each factor.

        Examples
        --------
        >>> from prodige import ProductEmbedding, ProductGraph
        >>> product = ProductGraph.from_factors([[[0.0], [3.0]], [[0.0], [4.0]]], [[0, 0], [1, 1]], [0.0, 0.0])
        >>> ProductEmbedding.from_product(product)([0]).detach().round(decimals=3)
        tensor([[0., 5.]])
        """
        if not isinstance(product, ProductGraph):
            raise TypeError(
                f"product must be a ProductGraph, got {type(product).__name__}; "
                "learnable factors go into ProductEmbedding(factors, codes)"
            )
        factors = []
        for factor in product.factors:
            graph = factor.graph
            i, j, weight = graph.edges
            own: dict[str, Any] = {"weight": weight, "n_vertices": graph.n_vertices, "n_items": graph.n_items}
            factors.append(GraphEmbedding(i, j, probability=probability, **(own | options)))
        places, codes, lengths = product.places, product.codes, product.lengths
        if places is not None:
            _, first = np.unique(places, return_index=True)
            codes, lengths = codes[first], lengths[first]
        return cls(factors, codes, lengths, product.power, product.gauge, places)

    # -- what it holds -----------------------------------------------------------------------------------------------

    @property
    def graphs(self) -> list[GraphEmbedding]:
        """The factors, as a list that knows their type."""
        return [factor for factor in self.factors if isinstance(factor, GraphEmbedding)]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.codes) if self.places is None else len(self.places)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.factors)

    @property
    def n_edges(self) -> int:
        """Number of candidate edges of all factors."""
        return sum(graph.n_edges for graph in self.graphs)

    @property
    def lengths(self) -> torch.Tensor:
        """What each vertex adds to its distances before the gauge, shape [V]."""
        return functional.softplus(self.theta_e, threshold=40)

    @property
    def numbers_per_item(self) -> float:
        """Memory of what :meth:`freeze` would give, as :attr:`prodige.ProductGraph.numbers_per_item` counts it."""
        n_numbers = sum(graph.n_vertices + 2 * int((graph.theta_b >= 0).sum()) for graph in self.graphs)
        n_numbers += self.codes.numel() + len(self.codes)
        return (n_numbers + numbers_of_places(self.n_items, len(self.codes))) / self.n_items

    def extra_repr(self) -> str:
        """Return what ``repr`` shows."""
        return f"n_items={self.n_items}, n_factors={self.n_factors}, power={self.power:g}, gauge={self.gauge:g}"

    # -- distances ---------------------------------------------------------------------------------------------------

    def forward(self, sources: Any, targets: Any = None) -> torch.Tensor:
        """Return distances from sources to targets, shape [S, T], differentiable."""
        tails = self._vertices("sources", sources)
        heads = self._vertices("targets", np.arange(self.n_items) if targets is None else targets)
        lengths = self.lengths
        total = lengths.index_select(0, tails)[:, None] + lengths.index_select(0, heads)
        for factor, codes in zip(self.factors, self.codes.T, strict=True):
            hubs, rows = codes[tails].unique(return_inverse=True)
            steps = factor(hubs) ** self.power
            total = total + steps.index_select(0, rows).index_select(1, codes[heads])
        return root(total, tails[:, None] == heads, self.gauge)

    def freeze(self) -> ProductGraph:
        """Return the product of the graphs that the factors freeze to.

        Where a factor has no path the distance is infinite there, not its ``unreachable``.

        Examples
        --------
        >>> from prodige import GraphEmbedding, ProductEmbedding
        >>> factor = GraphEmbedding([0, 1], [1, 2], weight=2.0)
        >>> ProductEmbedding([factor], [[0], [2]], lengths=0.5, power=1, gauge=1).freeze().distance(0, 1)
        5.0
        """
        return ProductGraph.from_factors(
            [graph.freeze() for graph in self.graphs],
            self.codes.numpy(),
            self.lengths.detach().numpy(),
            self.power,
            self.gauge,
            None if self.places is None else self.places.numpy(),
        )

    def _vertices(self, name: str, values: Any) -> torch.Tensor:
        """Return the vertices of items."""
        items = torch.tensor(check_vertices(name, values, self.n_items, self.theta_e.device), dtype=torch.int64)
        return items if self.places is None else self.places[items].long()


def root(total: torch.Tensor, same: torch.Tensor, gauge: float) -> torch.Tensor:
    """Return the root of sums, 0 for those of a vertex with itself.

    Where the sum is 0 the slope of a root is infinite; a gradient of 0 is taken there, as for a vertex with itself.

    Examples
    --------
    >>> import torch
    >>> from prodige.learning.product import root
    >>> total = torch.tensor([4.0, 9.0, 0.0], requires_grad=True)
    >>> root(total, torch.tensor([False, True, False]), 2.0).sum().backward()
    >>> total.grad
    tensor([0.2500, 0.0000, 0.0000])
    """
    zero = same | (total == 0)
    return torch.where(zero, 1.0, total).pow(1 / gauge).masked_fill(zero, 0.0)


def check_factors(factors: Iterable[GraphEmbedding]) -> list[GraphEmbedding]:
    """Return learnable graphs that can be factors of a product."""
    if isinstance(factors, GraphEmbedding) or not isinstance(factors, Iterable):
        raise TypeError(f"factors must be a list of GraphEmbedding, got {type(factors).__name__}")
    graphs = list(factors)
    check_count(graphs)
    for m, graph in enumerate(graphs):
        if not isinstance(graph, GraphEmbedding):
            raise TypeError(
                f"factors[{m}] must be a GraphEmbedding, got {type(graph).__name__}; "
                "ProductEmbedding.from_product makes them of a ProductGraph"
            )
        if graph.n_items > MAX_HUBS:
            raise ValueError(f"factors[{m}] has {graph.n_items} items; a factor has at most {MAX_HUBS} hubs")
        if graph.estimator == "score":
            raise ValueError(
                f"factors[{m}] has the estimator 'score', which needs a loss for each search of its own; "
                "take 'toggle' or 'path'"
            )
    return graphs
