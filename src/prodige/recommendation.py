"""Recommendation: users and items are vertices of one graph, and the items nearest to a user are recommended."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from prodige import fileformat
from prodige._validation import MAX_INT32, check_ids, check_integer
from prodige.engine import count_threads
from prodige.graph import Graph
from prodige.interactions import Recommender, best, check_interactions, parts
from prodige.pace import Callback, Pace

if TYPE_CHECKING:
    from typing import Self

EdgeKind = Literal["hubs", "normal", "bipartite", "random"]
EDGES = ("hubs", "normal", "bipartite", "random")

# Distances from the vertices that users hang on are kept between calls up to this size: 1 GiB as float32.
_MOST_KEPT = 1 << 28

# Distances in one block: 64 MiB.
_BLOCK = 1 << 24

# Stands for the distance of items without a path when likelihoods are compared.
_UNREACHABLE = 1e4

Ids = NDArray[np.int64]
Distances = NDArray[np.float32]


class GraphRecommender(Recommender):
    """Users and items as vertices of one graph; an item is recommended to a user the nearer it is.

    Distances are fitted to the paper's objective, the cross-entropy of softmax(-d(user, item)), over all items at once.
    The conventions are those of the library ``implicit``.

    Parameters
    ----------
    numbers_per_item : float
        The size of the graph: one number for each vertex and two for each edge, divided by users and items. A little
        more than 3 is the least.
    edges : {"hubs", "normal", "bipartite", "random"}
        Which edges may exist. ``"hubs"``: users and items hang on groups of their kind
        (:mod:`prodige.communities`); fast, and the best by far. The others are those of the paper
        (:mod:`prodige.rankfit`): user-item pairs with 16 cosine neighbours of each user and item, the pairs alone, or
        50 random edges for each vertex.
    max_time : float, optional
        Seconds for the fit.
    random_state : int, RandomState or None
        The same seed gives the same graph.
    n_jobs : int, optional
        Threads; all processors when left out.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable
        Each is called with a :class:`prodige.pace.Status` after every step; one that returns True ends the fit, and
        ``graph_`` is as good as it got.

    Attributes
    ----------
    graph_ : Graph
        Its items are the users, then the items: item ``x`` is vertex ``n_users_ + x``.
    numbers_per_item_ : float
        The size reached.
    history_ : list of dict
        One entry for each step of the fit.
    stopped_ : {"finished", "callback", "interrupt"}
        How the fit ended.
    user_labels_, item_labels_ : list of str or None
        As given to ``fit``; saved with the model.
    n_users_, n_items_, n_features_in_ : int

    Notes
    -----
    Only whether there is an interaction counts, not how large it is. A user without interactions is put where the most
    popular items are near. An item that nobody has met is farther than all others.

    References
    ----------
    Mazur, Egiazarian, Morozov, Babenko: Beyond Vector Spaces: Compact Data Representation as Differentiable Weighted
    Graphs. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige import GraphRecommender
    >>> tastes = np.kron(np.eye(2), np.ones((20, 10)))  # two crowds, ten items each
    >>> tastes[0, 3] = 0
    >>> train = csr_array(tastes)
    >>> model = GraphRecommender(numbers_per_item=4, random_state=0).fit(train)
    >>> ids, scores = model.recommend(0, train[[0]], N=1)
    >>> ids
    array([3], dtype=int32)
    """

    def __init__(
        self,
        numbers_per_item: float = 4,
        edges: EdgeKind = "hubs",
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = (),
    ) -> None:
        self.numbers_per_item = numbers_per_item
        self.edges = edges
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        user_items: Any,
        y: Any = None,
        *,
        user_labels: Sequence[str] | None = None,
        item_labels: Sequence[str] | None = None,
    ) -> Self:
        """Learn a graph from interactions.

        Parameters
        ----------
        user_items : sparse matrix or array-like, shape [U, I]
            Above 0 where a user met an item.
        y : ignored
        user_labels, item_labels : sequence of str, optional
            Names, kept as ``user_labels_`` and ``item_labels_`` and saved with the model.
        """
        start = time.perf_counter()
        interactions = check_interactions(user_items)
        self._check_parameters()
        n_users, n_items = interactions.shape
        users, items = (
            check_labels("user_labels", user_labels, n_users),
            check_labels("item_labels", item_labels, n_items),
        )
        random = check_random_state(self.random_state)
        if self.edges == "hubs":
            from prodige.communities import N_STEPS, fit_communities

            pace = self._pace(N_STEPS, start)
            graph = fit_communities(interactions, self.numbers_per_item, pace, random, self.n_jobs)
        else:
            from prodige.rankfit import N_STEPS, fit_ranking

            pace = self._pace(N_STEPS, start)
            graph = fit_ranking(
                interactions, self.edges, self.numbers_per_item, pace=pace, random_state=random, n_jobs=self.n_jobs
            )
        self._remember(interactions)
        self.user_labels_, self.item_labels_ = users, items
        self.history_, self.stopped_ = pace.history, pace.stopped
        self._take(graph)
        idle = np.flatnonzero(np.diff(interactions.indptr) == 0)
        if self.edges == "hubs" and idle.size:
            self._hang(idle, self._nearest_anchors(csr_array((idle.size, n_items))))
        if pace.stopped == "interrupt":
            warnings.warn("the fit was interrupted: graph_ is the best so far", ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit_users(self, users: ArrayLike, user_items: Any) -> Self:
        """Place users, new ones or known ones, without touching the rest of the graph.

        A user hangs on the vertex from where its items are nearest: on one of the groups if the graph has any, else on
        one of the other users.

        Parameters
        ----------
        users : int or array-like of int
            Their ids. Ids from ``n_users_`` on are new; new users that are skipped count as users without interactions.
        user_items : sparse matrix or array-like, shape [len(users), n_items]
            What they met.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> tastes = np.kron(np.eye(2), np.ones((20, 10)))
        >>> model = GraphRecommender(random_state=0).fit(tastes)
        >>> newcomer = np.zeros((1, 10 + 10))
        >>> newcomer[0, [11, 12, 13]] = 1
        >>> model = model.partial_fit_users([40], newcomer)
        >>> model.n_users_, set(model.recommend(40, newcomer, N=7)[0]) == {10, 14, 15, 16, 17, 18, 19}
        (41, True)
        """
        check_is_fitted(self)
        ids = check_ids("users", users, MAX_INT32 // 2, "user")
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"users must name each user once, got {values[counts > 1][0]} more than once")
        met = self._check_met(user_items, ids.size)
        if met.nnz:
            met = check_interactions(met)
        known = ids[ids < self.n_users_]
        if known.size and not self.graph_.n_hubs:
            raise ValueError(
                f"users[{int((ids < self.n_users_).argmax())}] = {known[0]} is known, and the edges of known users are "
                'ways of others in a graph without hubs; fit anew, or use edges="hubs"'
            )
        n_users = max(self.n_users_, int(ids.max(initial=-1)) + 1)
        skipped = np.setdiff1d(np.arange(self.n_users_, n_users), ids)
        placed = np.concatenate([ids, skipped])
        met.resize(placed.size, self.n_items_)
        shift = n_users - self.n_users_
        anchors = self._nearest_anchors(met)
        anchors += np.where(anchors >= self.n_users_, shift, 0)
        if shift:
            self.user_labels_ = None  # there are none for the new ones
            self._grow(shift)
        self._hang(placed, anchors)
        return self

    def _check_parameters(self) -> None:
        if self.edges not in EDGES:
            raise ValueError(f"edges must be one of {', '.join(map(repr, EDGES))}, got {self.edges!r}")
        numbers = self.numbers_per_item
        if not isinstance(numbers, (int, float, np.number)) or not math.isfinite(numbers):
            raise ValueError(f"numbers_per_item must be a finite number, got {numbers!r}")
        limit = self.max_time
        if limit is not None and not (isinstance(limit, (int, float, np.number)) and 0 < limit < math.inf):
            raise ValueError(f"max_time must be a number of seconds above 0, got {limit!r}")
        count_threads(self.n_jobs)

    def _pace(self, n_steps: int, start: float) -> Pace:
        spent = time.perf_counter() - start
        return Pace(n_steps, self.max_time, spent, tuple(self.callbacks or ()), self.verbose)

    def _take(self, graph: Graph) -> None:
        """Make a graph the one in use."""
        self.graph_ = graph
        self._kept: tuple[Ids, Distances] | None = None  # see _from
        self._hooked: tuple[Ids, Distances] | None = None  # see _hooks

    # -- users that hang on one vertex -------------------------------------------------------------------------------

    def _nearest_anchors(self, met: csr_array) -> Ids:
        """Return for each row of items the vertex from where they are most likely; popular ones for empty rows."""
        graph = self.graph_
        # Groups, or all users of a graph without any.
        candidates = np.arange(graph.n_items, graph.n_vertices) if graph.n_hubs else np.arange(self.n_users_)
        is_idle = np.diff(met.indptr) == 0
        rows = csr_array((np.ones(met.nnz), met.indices, met.indptr), shape=met.shape)
        rows = vstack([rows, csr_array(self._popularity()[None])], format="csr")
        total = np.asarray(rows.sum(axis=1)).ravel()
        best, anchors = np.full(total.size, np.inf), np.full(total.size, candidates[0])
        for part in parts(candidates.size, _BLOCK // self.n_items_):
            distances = self._from(candidates[part]).astype(np.float64)
            distances[~np.isfinite(distances)] = _UNREACHABLE
            losses = (rows @ distances.T) / np.maximum(total, 1e-9)[:, None] + logsumexp(-distances, axis=1)
            choice = losses.argmin(axis=1)
            loss = losses[np.arange(choice.size), choice]
            anchors = np.where(loss < best, candidates[part][choice], anchors)
            best = np.minimum(loss, best)
        return np.where(is_idle, anchors[-1], anchors[:-1])

    def _popularity(self) -> NDArray[np.float64]:
        """Return how popular items are as far as the graph knows: the shorter or the more edges, the more popular."""
        graph, items = self.graph_, slice(self.n_users_, self.n_users_ + self.n_items_)
        if not graph.n_hubs:
            return graph.degrees()[items].astype(np.float64) + 1e-9
        shortest = np.full(graph.n_vertices, np.inf)
        np.minimum.at(shortest, graph.edges.i, graph.edges.weight)
        return np.asarray(np.exp(shortest[items].min() - shortest[items]))

    def _grow(self, n_new: int) -> None:
        """Add users without edges; all vertices after the users move up."""
        graph = self.graph_
        tails, heads = (ends + np.where(ends >= self.n_users_, n_new, 0) for ends in (graph.edges.i, graph.edges.j))
        self.n_users_ += n_new
        self._take(
            Graph.from_edges(
                tails,
                heads,
                graph.edges.weight,
                n_vertices=graph.n_vertices + n_new,
                n_items=graph.n_items + n_new,
            )
        )

    def _hang(self, users: Ids, anchors: Ids) -> None:
        """Give users one edge, in place of those they have."""
        graph = self.graph_
        is_moved = np.zeros(graph.n_vertices, dtype=bool)
        is_moved[users] = True
        stays = ~(is_moved[graph.edges.i] | is_moved[graph.edges.j])
        # Its length changes nothing for the user, whose every path begins with it: one like any other.
        length = float(np.median(graph.edges.weight[graph.edges.i < self.n_users_]))
        tails = np.concatenate([graph.edges.i[stays], users])
        heads = np.concatenate([graph.edges.j[stays], anchors])
        weights = np.concatenate([graph.edges.weight[stays], np.full(users.size, length, np.float32)])
        self._take(Graph.from_edges(tails, heads, weights, n_vertices=graph.n_vertices, n_items=graph.n_items))

    # -- what is learned ---------------------------------------------------------------------------------------------

    @property
    def numbers_per_item_(self) -> float:
        """Numbers in the graph for each user and item."""
        check_is_fitted(self)
        return self.graph_.numbers_per_item

    def distances(self, users: ArrayLike, items: ArrayLike | None = None) -> Distances:
        """Return distances from users to items, to all items when ``items`` is left out.

        Parameters
        ----------
        users, items : int or array-like of int
            Ids; they may repeat.

        Returns
        -------
        ndarray of float32, shape [U, I]
            ``inf`` where there is no path.
        """
        return np.negative(self.scores(users, items))

    def similar_items(
        self, itemid: ArrayLike, N: int = 10, filter_items: ArrayLike | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the items nearest to an item, itself first, as ids and scores (distances below 0).

        Parameters
        ----------
        itemid : int or array-like of int
        N : int
            How many; where fewer can be reached, rows end with id -1 and score ``-inf``.
        filter_items : array-like of int, optional
            Items to leave out.
        """
        check_is_fitted(self)
        return self._similar(itemid, N, filter_items, "item", self.n_users_, self.n_items_)

    def similar_users(
        self, userid: ArrayLike, N: int = 10, filter_users: ArrayLike | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the users nearest to a user, itself first, as ids and scores (distances below 0).

        Parameters
        ----------
        userid : int or array-like of int
        N : int
            How many; where fewer can be reached, rows end with id -1 and score ``-inf``.
        filter_users : array-like of int, optional
            Users to leave out.
        """
        check_is_fitted(self)
        return self._similar(userid, N, filter_users, "user", 0, self.n_users_)

    def _similar(
        self, ids: ArrayLike, N: int, left_out: ArrayLike | None, kind: str, first: int, n: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        sources = check_ids(f"{kind}id", ids, n, kind)
        wanted = check_integer("N", N, 1, MAX_INT32)
        dropped = None if left_out is None else check_ids(f"filter_{kind}s", left_out, n, kind)
        found = np.full((sources.size, wanted), -1, dtype=np.int32)
        scores = np.full((sources.size, wanted), -np.inf, dtype=np.float32)
        targets = np.arange(first, first + n)
        for part in parts(sources.size, _BLOCK // n):
            block = np.negative(self.graph_.distances(first + sources[part], targets, n_jobs=self.n_jobs))
            # Itself comes first, also where others are at distance 0: nothing is above infinity.
            own = np.arange(len(block)), sources[part]
            block[own] = np.inf
            if dropped is not None:
                block[:, dropped] = -np.inf
            ids_found, values = best(np.ascontiguousarray(block, dtype=np.float32), min(wanted, n))
            width = ids_found.shape[1]
            found[part, :width], scores[part, :width] = ids_found, np.where(values == np.inf, 0, values)
        return (found[0], scores[0]) if np.ndim(ids) == 0 else (found, scores)

    def _scores(self, users: Ids) -> Distances:
        """Return distances below 0. Users with one edge have the distances of the vertex they hang on."""
        hooks, lengths = self._hooks()
        rows, place = np.unique(hooks[users], return_inverse=True)
        return np.asarray(np.negative(self._from(rows)[place] + lengths[users][:, None]))

    def _hooks(self) -> tuple[Ids, Distances]:
        """Return the vertex from where the paths of each user begin, and how far it is: itself if it has more edges."""
        if self._hooked is None:
            graph, users = self.graph_, np.arange(self.n_users_)
            hooks, lengths = users.copy(), np.zeros(users.size, np.float32)
            is_single = graph.degrees()[: users.size] == 1
            for ends, others in ((graph.edges.i, graph.edges.j), (graph.edges.j, graph.edges.i)):
                mine = np.flatnonzero(ends < users.size)
                mine = mine[is_single[ends[mine]]]
                hooks[ends[mine]], lengths[ends[mine]] = others[mine], graph.edges.weight[mine]
            self._hooked = hooks, lengths
        return self._hooked

    def _from(self, vertices: Ids) -> Distances:
        """Return distances from vertices to all items; those from groups are kept, as users share them."""
        graph = self.graph_
        items = np.arange(self.n_users_, self.n_users_ + self.n_items_)
        if graph.n_hubs == 0 or graph.n_hubs * self.n_items_ > _MOST_KEPT or (vertices < graph.n_items).any():
            return np.asarray(graph.distances(vertices, items, n_jobs=self.n_jobs))
        if self._kept is None:
            self._kept = np.full(graph.n_hubs, -1), np.empty((0, self.n_items_), np.float32)
        place, rows = self._kept
        missing = vertices[place[vertices - graph.n_items] < 0]
        if missing.size:
            place[missing - graph.n_items] = len(rows) + np.arange(missing.size)
            rows = np.concatenate([rows, graph.distances(missing, items, n_jobs=self.n_jobs)])
            self._kept = place, rows
        return np.asarray(rows[place[vertices - graph.n_items]])

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: fileformat.StrPath) -> None:
        """Write the model to one ``.prodige`` file: the graph, the sizes, the settings and the labels.

        Parameters
        ----------
        path : str or path-like
            A file that is there is replaced in one step, or stays as it was.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> model = GraphRecommender(random_state=0).fit(np.kron(np.eye(2), np.ones((20, 10))))
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(f"{directory}/tastes.prodige")
        ...     loaded = GraphRecommender.load(f"{directory}/tastes.prodige")
        >>> bool((loaded.scores([0]) == model.scores([0])).all())
        True
        """
        check_is_fitted(self)
        self.graph_.save(
            path,
            {
                "model": type(self).__name__,
                "n_users": self.n_users_,
                "numbers_per_item": float(self.numbers_per_item),
                "edges": self.edges,
                "user_labels": self.user_labels_,
                "item_labels": self.item_labels_,
            },
        )

    @classmethod
    def load(cls, path: fileformat.StrPath) -> Self:
        """Read what :meth:`save` wrote; nothing in the file is run.

        Raises
        ------
        prodige.fileformat.FileFormatError
            If it is not a sound file, or a graph of something else.
        """
        metadata = fileformat.describe(path).metadata
        graph = Graph.load(path)
        if metadata.get("model") != cls.__name__:
            raise fileformat.FileFormatError(f"{path}: it holds no {cls.__name__}; open it with Graph.load")
        n_users, numbers, edges = (metadata.get(key) for key in ("n_users", "numbers_per_item", "edges"))
        if not isinstance(n_users, int) or not 0 < n_users < graph.n_items or edges not in EDGES:
            raise fileformat.FileFormatError(f"{path}: n_users = {n_users!r} or edges = {edges!r} cannot be right")
        if not isinstance(numbers, (int, float)):
            raise fileformat.FileFormatError(f"{path}: numbers_per_item = {numbers!r} cannot be right")
        model = cls(numbers_per_item=numbers, edges=edges)
        model.n_users_, model.n_items_ = n_users, graph.n_items - n_users
        model.n_features_in_ = model.n_items_
        try:
            model.user_labels_ = check_labels("user_labels", metadata.get("user_labels"), model.n_users_)
            model.item_labels_ = check_labels("item_labels", metadata.get("item_labels"), model.n_items_)
        except (TypeError, ValueError) as error:
            raise fileformat.FileFormatError(f"{path}: {error}") from None
        model.history_, model.stopped_ = [], "finished"
        model._take(graph)
        return model


def check_labels(name: str, labels: Any, n: int) -> list[str] | None:
    """Return names as a list of text, one for each user or item."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a list of text, got {labels!r}")
    result = list(labels)
    if len(result) != n:
        raise ValueError(f"{name} must have {n} entries, one for each, got {len(result)}")
    wrong = [label for label in result if not isinstance(label, str)]
    if wrong:
        raise TypeError(f"{name} must be text, got {wrong[0]!r}; convert with map(str, ...)")
    return [str(label) for label in result]  # text of numpy is not what JSON knows


__all__ = ["EDGES", "GraphRecommender"]
