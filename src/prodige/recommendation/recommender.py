"""Recommendation: users and items are vertices of one graph, and the items nearest to a user are recommended."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from prodige._validation import MAX_INT32, check_ids
from prodige.graph import container, encoding
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph
from prodige.graph.header import shortened
from prodige.graph.loadable import Loadable
from prodige.progress import Callback, Monitor, check_callbacks
from prodige.recommendation.interactions import Recommender, best, check_interactions, check_length, parts
from prodige.recommendation.paths import Paths, attach_users, grow, place_idle
from prodige.threads import count_threads

if TYPE_CHECKING:
    from typing import Self

EdgeKind = Literal["hubs", "normal", "bipartite", "random"]
EDGES = ("hubs", "normal", "bipartite", "random")

# Distances in one block: 64 MiB.
_BLOCK = 1 << 24

# What a user takes while it is placed: its id, its edge and its row of interactions, some of them more than once.
_BYTES_PER_USER = 128
_MOST_BYTES = 1 << 30

Ids = NDArray[np.int64]
Distances = NDArray[np.float32]


class GraphRecommender(Loadable, Recommender):
    """Users and items as vertices of one graph; an item is recommended to a user the nearer it is.

    Distances are fitted to the paper's objective, the cross-entropy of softmax(-d(user, item)), over all items at once.
    The conventions are those of the library ``implicit``.

    Parameters
    ----------
    numbers_per_item : float
        The size of the graph: one number for each vertex and two for each edge, divided by users and items. A little
        more than 3 is the least.
    edges : {"hubs", "normal", "bipartite", "random"}
        Which edges may exist. ``"hubs"``: users and items are attached to groups of their kind
        (:mod:`prodige.recommendation.hub_graph`); fast, and the best by far. The others are those of the paper
        (:mod:`prodige.recommendation.paper.fit`): user-item pairs with 16 cosine neighbours of each user and item, the
        pairs alone, or 50 random edges for each vertex.
    max_time : float, optional
        Seconds for the fit. It is kept within 2 seconds or a fifth, but for tables so large that to read them and to
        make one step takes longer.
    random_state : int, RandomState or None
        A seed gives the same graph on the same machine with any number of threads, unless ``max_time`` is given.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every step; one that returns True ends the fit, and
        ``graph_`` is as good as it got.

    Attributes
    ----------
    graph_ : Graph
        Its items are the users, then the items: item ``x`` is vertex ``n_users_ + x``.
    numbers_per_item_ : float
        The size reached.
    history_ : list of prodige.progress.Record
        One for each step of the fit.
    stopped_ : {"finished", "callback", "interrupt"}
        How the fit ended. After Ctrl-C, ``graph_`` is the best so far; before users and items are grouped there is
        none to keep, and the model stays as it was.
    user_labels_, item_labels_ : list of str or None
        As given to ``fit``; saved with the model.
    n_users_, n_items_, n_features_in_ : int

    Notes
    -----
    Only whether there is an interaction counts, not how large it is. A user without interactions is put where the most
    popular items are near. An item that nobody has interacted with is farther than all others.

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

    _paths: Paths
    graph_: Graph
    user_labels_: list[str] | None
    item_labels_: list[str] | None

    _kind = "recommender"

    def __init__(
        self,
        numbers_per_item: float = 4,
        edges: EdgeKind = "hubs",
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
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
            Above 0 where a user interacted with an item.
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
        check_room("user_labels", users)
        check_room("item_labels", items)
        random = check_random_state(self.random_state)
        if self.edges == "hubs":
            from prodige.recommendation.hub_graph import N_STEPS, fit_hub_graph

            monitor = self._monitor(N_STEPS, start)
            graph = fit_hub_graph(interactions, self.numbers_per_item, monitor, random, self.n_jobs)
            idle = np.flatnonzero(np.diff(interactions.indptr) == 0)
            graph = monitor.insist(lambda: place_idle(graph, n_users, idle, self.n_jobs))
        else:
            from prodige.recommendation.paper.fit import N_STEPS, fit_ranking

            monitor = self._monitor(N_STEPS, start)
            graph = fit_ranking(
                interactions,
                self.edges,
                self.numbers_per_item,
                monitor=monitor,
                random_state=random,
                n_jobs=self.n_jobs,
            )
        self._become(graph, n_users, users, items, history_=monitor.history, stopped_=monitor.stopped)
        if monitor.stopped == "interrupt":
            warnings.warn("the fit was interrupted: graph_ is the best so far", ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit_users(self, userids: ArrayLike, user_items: Any) -> Self:
        """Place users, new ones or known ones, without touching the rest of the graph.

        A user is attached to the vertex from where its items are nearest: on one of the groups if the graph has any,
        else on one of the other users.

        Parameters
        ----------
        userids : int or array-like of int
            Their ids. Ids from ``n_users_`` on are new; new users that are skipped count as users without interactions,
            unless they are so many that they would take more than 1 GiB, which is refused.
        user_items : sparse matrix or array-like, shape [len(userids), n_items]
            What they interacted with.

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
        ids = check_ids("userids", userids, MAX_INT32 // 2, "user")
        values, counts = np.unique(ids, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"userids must name each user once, got {values[counts > 1][0]} more than once")
        interacted = self._check_interacted(user_items, ids.size)
        if interacted.nnz:
            interacted = check_interactions(interacted)
        known = ids[ids < self.n_users_]
        if known.size and not self.graph_.n_hubs:
            raise ValueError(
                f"userids[{int((ids < self.n_users_).argmax())}] = {known[0]} is known, and the edges of known users "
                'are part of paths of others in a graph without hubs; fit anew, or use edges="hubs"'
            )
        n_users = max(self.n_users_, int(ids.max(initial=-1)) + 1)
        check_gap(ids, self.n_users_)
        skipped = np.setdiff1d(np.arange(self.n_users_, n_users), ids)
        placed = np.concatenate([ids, skipped])
        interacted.resize(placed.size, self.n_items_)
        shift = n_users - self.n_users_
        anchors = self._paths.nearest_anchors(interacted, self.n_jobs)
        anchors += np.where(anchors >= self.n_users_, shift, 0)
        graph = attach_users(grow(self.graph_, self.n_users_, shift), n_users, placed, anchors)
        user_labels = None if shift else self.user_labels_  # there are none for the new ones
        self._become(graph, n_users, user_labels, self.item_labels_)
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
        check_callbacks(self.callbacks)

    def _monitor(self, n_steps: int, start: float) -> Monitor:
        spent = time.perf_counter() - start
        return Monitor(n_steps, self.max_time, spent, self.callbacks, self.verbose)

    def _become(
        self, graph: Graph, n_users: int, user_labels: list[str] | None, item_labels: list[str] | None, **others: Any
    ) -> None:
        """Take on what was learned, all of it in one step: neither Ctrl-C nor another thread finds half of it."""
        n_items = graph.n_items - n_users
        self.__dict__.update(
            graph_=graph,
            n_users_=n_users,
            n_items_=n_items,
            n_features_in_=n_items,
            user_labels_=user_labels,
            item_labels_=item_labels,
            _paths=Paths(graph, n_users),
            **others,
        )

    # -- what is learned ---------------------------------------------------------------------------------------------

    @property
    def numbers_per_item_(self) -> float:
        """Numbers in the graph for each user and item."""
        check_is_fitted(self)
        return self.graph_.numbers_per_item

    def distances(self, userid: ArrayLike, items: ArrayLike | None = None) -> Distances:
        """Return distances from users to items, to all items when ``items`` is left out.

        Parameters
        ----------
        userid, items : int or array-like of int
            Ids; they may repeat.

        Returns
        -------
        ndarray of float32, shape [U, I]
            ``inf`` where there is no path.
        """
        return np.negative(self.scores(userid, items))

    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,
        *,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the items nearest to an item, itself first, as ids and scores (distances below 0).

        Parameters
        ----------
        itemid : int or array-like of int
        N : int
            How many; where fewer can be reached, rows end with id -1 and score ``-inf``.
        filter_items : array-like of int, optional
            Items to leave out.
        items : array-like of int, optional
            The only items to choose from, all when left out; they may repeat.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> model = GraphRecommender(random_state=0).fit(np.kron(np.eye(2), np.ones((20, 10))))
        >>> model.similar_items(12, N=2, items=[3, 12, 15])[0]
        array([12, 15], dtype=int32)
        """
        check_is_fitted(self)
        n_users, n_items = self._paths.n_users, self._paths.items.size
        return self._similar(self._paths, itemid, N, filter_items, items, "item", n_users, n_items)

    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the users nearest to a user, itself first, as ids and scores (distances below 0).

        Parameters
        ----------
        userid : int or array-like of int
        N : int
            How many; where fewer can be reached, rows end with id -1 and score ``-inf``.
        filter_users : array-like of int, optional
            Users to leave out.
        users : array-like of int, optional
            The only users to choose from, all when left out; they may repeat.
        """
        check_is_fitted(self)
        return self._similar(self._paths, userid, N, filter_users, users, "user", 0, self._paths.n_users)

    def _similar(
        self,
        paths: Paths,
        ids: ArrayLike,
        N: int,
        left_out: ArrayLike | None,
        chosen: ArrayLike | None,
        kind: str,
        first: int,
        n: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        sources = check_ids(f"{kind}id", ids, n, kind)
        target = check_length(N, sources.size, n, kind)
        dropped = np.zeros(n, dtype=bool)
        if chosen is not None:
            dropped[:] = True
            dropped[check_ids(f"{kind}s", chosen, n, kind)] = False
        if left_out is not None:
            dropped[check_ids(f"filter_{kind}s", left_out, n, kind)] = True
        found = np.full((sources.size, target), -1, dtype=np.int32)
        scores = np.full((sources.size, target), -np.inf, dtype=np.float32)
        targets = np.arange(first, first + n)
        for part in parts(sources.size, _BLOCK // n):
            block = np.negative(paths.graph.distances(first + sources[part], targets, n_jobs=self.n_jobs))
            # Itself comes first, also where others are at distance 0: nothing is above infinity.
            own = np.arange(len(block)), sources[part]
            block[own] = np.inf
            block[:, dropped] = -np.inf
            ids_found, values = best(np.ascontiguousarray(block, dtype=np.float32), min(target, n))
            width = ids_found.shape[1]
            found[part, :width], scores[part, :width] = ids_found, np.where(values == np.inf, 0, values)
        return (found[0], scores[0]) if np.ndim(ids) == 0 else (found, scores)

    def _scores(self, users: Ids) -> Distances:
        return np.asarray(np.negative(self._paths.distances(users, self.n_jobs)))

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: StrPath) -> None:
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
        graph, arrays = encoding.encode(self.graph_)
        content = {
            "graph": graph,
            "n_users": self.n_users_,
            "numbers_per_item": float(self.numbers_per_item),
            "edges": self.edges,
        }
        for name, labels in (("user_labels", self.user_labels_), ("item_labels", self.item_labels_)):
            if labels is not None:
                arrays[name] = container.pack_texts(labels)
        container.write(path, "recommender", content, arrays)

    @classmethod
    def _from_contents(cls, contents: container.Contents, n_jobs: int | None) -> Self:
        """Return the model that a file holds; ValueError, TypeError or KeyError if its parts do not fit together."""
        content = contents.content
        n_users, numbers, edges = content["n_users"], content["numbers_per_item"], content["edges"]
        graph = encoding.decode(content["graph"], contents.arrays)
        if type(n_users) is not int or not 0 < n_users < graph.n_items or edges not in EDGES:
            raise ValueError(f"n_users = {shortened(n_users)} or edges = {shortened(edges)} cannot be right")
        if type(numbers) not in (int, float):
            raise TypeError(f"numbers_per_item = {shortened(numbers)} cannot be right")
        users = read_labels(contents, "user_labels", n_users)
        items = read_labels(contents, "item_labels", graph.n_items - n_users)
        model = cls(numbers_per_item=numbers, edges=edges, n_jobs=n_jobs)
        model._become(graph, n_users, users, items, history_=[], stopped_="finished")
        return model


# -- checks ----------------------------------------------------------------------------------------------------------


def check_gap(users: Ids, n_users: int) -> None:
    """Refuse ids so far from those in use that the users between them would fill the memory."""
    n_skipped = int(users.max(initial=-1)) + 1 - n_users - np.count_nonzero(users >= n_users)
    n_bytes = n_skipped * _BYTES_PER_USER
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"userids[{users.argmax()}] = {users.max()} skips {n_skipped} ids, which would be users without "
            f"interactions and take about {n_bytes / 2**30:.1f} GiB; number new users from {n_users} on"
        )


def check_room(name: str, labels: list[str] | None) -> None:
    """Refuse labels that no file has room for, before there is a model that cannot be saved."""
    n_bytes = sum(len(label.encode("utf-8", "surrogatepass")) for label in labels or ())
    if n_bytes > container.MAX_TEXTS:
        raise ValueError(
            f"{name} take {n_bytes} bytes in a file, at most {container.MAX_TEXTS} are possible; "
            "fit without them and keep them in a file of their own, or make them shorter"
        )


def read_labels(contents: container.Contents, name: str, n: int) -> list[str] | None:
    """Return the labels in a file, if it has any: an array of texts, or what a file of version 1 had in its header."""
    if name in contents.arrays:
        return container.unpack_texts(contents.arrays[name], n)
    return check_labels(name, contents.content.get(name), n)


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
    return [str(label) for label in result]  # text of numpy is a kind of its own


__all__ = ["EDGES", "GraphRecommender"]
