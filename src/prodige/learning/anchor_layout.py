"""The vertices of a graph with anchors: items, then hubs, then anchors."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Sized(Protocol):
    """A graph, learned or not, as far as its size goes."""

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""

    @property
    def n_items(self) -> int:
        """Number of items."""


class AnchorLayout(NamedTuple):
    """How many vertices of each kind there are, in the order of their numbers: items, hubs, anchors.

    Items are joined to hubs, and every hub to every anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.learning.anchor_layout import AnchorLayout
    >>> layout = AnchorLayout(n_items=3, n_hubs=2, n_anchors=1)
    >>> layout.anchors
    array([5], dtype=int32)
    >>> i, j = layout.join(item=np.arange(3), hub=np.array([0, 0, 1]))
    >>> i, j
    (array([0, 1, 2, 3, 4]), array([3, 3, 4, 5, 5]))
    """

    n_items: int
    n_hubs: int
    n_anchors: int

    @classmethod
    def of(cls, graph: Sized, n_anchors: int) -> AnchorLayout:
        """Return the layout of a graph whose last vertices are anchors."""
        return cls(graph.n_items, graph.n_vertices - graph.n_items - n_anchors, n_anchors)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.first_anchor + self.n_anchors

    @property
    def first_hub(self) -> int:
        """Vertex of the first hub."""
        return self.n_items

    @property
    def first_anchor(self) -> int:
        """Vertex of the first anchor."""
        return self.n_items + self.n_hubs

    @property
    def anchors(self) -> NDArray[np.int32]:
        """Vertices of the anchors, shape [K]."""
        return np.arange(self.first_anchor, self.n_vertices, dtype=np.int32)

    def join(self, item: NDArray[Any], hub: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ends of all edges: from items to hubs, as given, then from every hub to every anchor."""
        of_hub, anchor = (index.ravel() for index in np.indices((self.n_hubs, self.n_anchors)))
        return (
            np.concatenate([item, self.first_hub + of_hub]),
            np.concatenate([self.first_hub + hub, self.first_anchor + anchor]),
        )

    def kinds(self, i: NDArray[Any], j: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which edges, ``i < j``, go from items to hubs, and which from hubs to anchors."""
        of_items = (i < self.first_hub) & (j >= self.first_hub) & (j < self.first_anchor)
        between = (i >= self.first_hub) & (i < self.first_anchor) & (j >= self.first_anchor)
        return of_items, between
