"""Recommendation: users and items are vertices of one graph, and the items nearest to a user are recommended."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_ids
from prodige.graph.atomic import StrPath
from prodige.graph.container import Contents
from prodige.graph.graph import Graph
from prodige.graph.loadable import Loadable
from prodige.graph.product import ProductGraph
from prodige.progress import Callback
from prodige.recommendation import growing, saving
from prodige.recommendation.explanation import Explanation, explain
from prodige.recommendation.interactions import Choice, Recommender, check_interactions, check_length, parts
from prodige.recommendation.labels import check_labels, check_room
from prodige.recommendation.parameters import EDGES, EdgeKind, check_parameters, warn_of_sides
from prodige.recommendation.paths import Paths
from prodige.recommendation.run import run
from prodige.recommendation.similar import Alike
from prodige.recommendation.vectors import Vectors
from prodige.threads import count_threads

if TYPE_CHECKING:
    from typing import Self

# Scores in one block of users: 4 MiB, which stay in the cache.
_BLOCK = 1 << 20

Ids = NDArray[np.int64]
Distances = NDArray[np.float32]


class GraphRecommender(Loadable, Recommender):
    """Users and items as vertices of one graph; an item is recommended to a user the nearer it is.

    The graph is a product of bipartite graphs, distilled from a teacher: vectors of users and items in floats, by
    alternating least squares whose settings are chosen on interactions held out of the training data. In each factor a
    user is one hub and an item is another; the conventions of the methods are those of the library ``implicit``.

    Parameters
    ----------
    bits_per_item : float, optional
        The size of the file that ``graph_.save`` writes, everything counted, divided by users and items. 64 when
        neither budget is given, or more where so few are there that the header of a file alone takes as much.
    numbers_per_item : float, optional
        The size as the paper counts, in place of bits: codes, lengths and entries of codebooks of a product a number
        each, of other graphs one number for each vertex and two for each edge; divided by users and items.
    edges : {"product", "normal", "bipartite", "random"}
        ``"product"``: as above; fast, and the best by far. The others are those of the paper
        (:mod:`prodige.recommendation.paper.fit`), whose size is given in numbers: user-item pairs with 16 cosine
        neighbours of each user and item, the pairs alone, or 50 random edges for each vertex.
    store_users : bool
        Whether users are part of the graph. Otherwise only items take bits, budgets are for each item, and a user is
        computed from its interactions whenever it is asked about.
    keep_interactions : bool
        Whether the model keeps what users interacted with, as ``interactions_`` and in its file. Then ``recommend``
        need not be told.
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
    graph_ : ProductGraph or Graph
        Its items are the users, then the items: item ``x`` is vertex ``n_users_ + x``. Where users are not stored it
        has items alone.
    bits_per_item_, numbers_per_item_ : float
        The size reached, for each user and item of the graph.
    interactions_ : scipy.sparse.csr_array or None
        What users interacted with, where that is kept.
    history_ : list of prodige.progress.Record
        One for each step of the fit.
    stopped_ : {"finished", "callback", "interrupt"}
        How the fit ended. After Ctrl-C, ``graph_`` is the best so far; before the first step is done there is none to
        keep, and the model stays as it was.
    user_labels_, item_labels_ : list of str or None
        As given to ``fit``; saved with the model.
    n_users_, n_items_, n_features_in_ : int

    Notes
    -----
    How large an interaction is counts as its weight: twice the mean counts twice. Give ones where counts say little.
    A user without interactions is where users are on average, and is recommended what is popular.

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
    >>> model = GraphRecommender(random_state=0).fit(train)
    >>> ids, scores = model.recommend(0, N=1)
    >>> ids
    array([3], dtype=int32)
    """

    _answers: Paths | Vectors
    graph_: Graph | ProductGraph
    interactions_: csr_array | None
    user_labels_: list[str] | None
    item_labels_: list[str] | None

    _kind = "recommender"

    def __init__(
        self,
        bits_per_item: float | None = None,
        numbers_per_item: float | None = None,
        edges: EdgeKind = "product",
        store_users: bool = True,
        keep_interactions: bool = True,
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.bits_per_item = bits_per_item
        self.numbers_per_item = numbers_per_item
        self.edges = edges
        self.store_users = store_users
        self.keep_interactions = keep_interactions
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
            Above 0 where a user interacted with an item: how much that counts.
        y : ignored
        user_labels, item_labels : sequence of str, optional
            Names, kept as ``user_labels_`` and ``item_labels_`` and saved with the model.
        """
        start = time.perf_counter()
        interactions = check_interactions(user_items)
        check_parameters(self)
        n_users, n_items = interactions.shape
        users = check_labels("user_labels", user_labels, n_users)
        items = check_labels("item_labels", item_labels, n_items)
        check_room("user_labels", users)
        check_room("item_labels", items)
        warn_of_sides(n_users, n_items)
        answers, monitor = run(self, interactions, start)
        kept = interactions if self.keep_interactions else None
        self._become(answers, n_users, users, items, kept, history_=monitor.history, stopped_=monitor.stopped)
        if monitor.stopped == "interrupt":
            warnings.warn("the fit was interrupted: graph_ is the best so far", ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit_users(self, userids: ArrayLike, user_items: Any) -> Self:
        """Place users, new ones or known ones, without touching the rest of the graph.

        A user is where its interactions put it: at the hubs that lose the least of what least squares over the items
        it interacted with say. In graphs of the paper it is attached to another user, from where its items are nearest.

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
        >>> model.n_users_, set(model.recommend(40, N=7)[0]) == {10, 14, 15, 16, 17, 18, 19}
        (41, True)
        """
        check_is_fitted(self)
        ids = growing.check_new("userids", userids)
        given = self._check_interacted(user_items, ids.size)
        growing.check_gap("userids", ids, self.n_users_, "users")
        rows = check_interactions(given) if given.nnz else given
        more = growing.Arrivals.of(ids, rows, self.n_users_)
        answers = growing.place_users(self._answers, more, self.n_jobs)
        labels = None if more.n > self.n_users_ else self.user_labels_  # there are none for the new ones
        kept = growing.replace_rows(self.interactions_, more)
        self._become(answers, more.n, labels, self.item_labels_, kept)
        return self

    def partial_fit_items(self, itemids: ArrayLike, item_users: Any) -> Self:
        """Place items, new ones or known ones, without touching the rest of the graph.

        Parameters
        ----------
        itemids : int or array-like of int
            Their ids. Ids from ``n_items_`` on are new; new items that are skipped count as items without interactions.
        item_users : sparse matrix or array-like, shape [len(itemids), n_users]
            Who interacted with them: rows are items, as in ``implicit``.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> tastes = np.kron(np.eye(2), np.ones((20, 10)))
        >>> model = GraphRecommender(random_state=0).fit(tastes)
        >>> novelty = np.zeros((1, 40))
        >>> novelty[0, 5:15] = 1
        >>> model = model.partial_fit_items([20], novelty)
        >>> model.n_items_, model.recommend([0, 30], N=1)[0].ravel().tolist()[0]
        (21, 20)
        """
        check_is_fitted(self)
        vectors = self._vectors("partial_fit_items")
        if not vectors.stores_users:
            raise ValueError("partial_fit_items needs users in the graph; fit with store_users=True, or fit anew")
        ids = growing.check_new("itemids", itemids)
        growing.check_gap("itemids", ids, self.n_items_, "items")
        given = growing.check_rows("item_users", item_users, ids.size, self.n_users_, "items", "users")
        more = growing.Arrivals.of(ids, given, self.n_items_)
        answers = growing.place_items(vectors, more, self.n_jobs)
        labels = None if more.n > self.n_items_ else self.item_labels_
        kept = growing.replace_columns(self.interactions_, more)
        self._become(answers, self.n_users_, self.user_labels_, labels, kept)
        return self

    def _become(
        self,
        answers: Paths | Vectors,
        n_users: int,
        user_labels: list[str] | None,
        item_labels: list[str] | None,
        interactions: csr_array | None,
        **others: Any,
    ) -> None:
        """Take on what was learned, all of it in one step: neither Ctrl-C nor another thread finds half of it."""
        self.__dict__.update(
            graph_=answers.graph,
            n_users_=n_users,
            n_items_=answers.n_items,
            n_features_in_=answers.n_items,
            user_labels_=user_labels,
            item_labels_=item_labels,
            interactions_=interactions,
            _answers=answers,
            **others,
        )

    def _vectors(self, what: str) -> Vectors:
        if not isinstance(self._answers, Vectors):
            raise ValueError(f'{what} needs a product of graphs; fit with edges="product"')
        return self._answers

    # -- what is learned ---------------------------------------------------------------------------------------------

    @property
    def numbers_per_item_(self) -> float:
        """Numbers in the graph for each user and item."""
        check_is_fitted(self)
        return self.graph_.numbers_per_item

    @property
    def bits_per_item_(self) -> float:
        """Bits of the graph's file for each user and item."""
        check_is_fitted(self)
        return self.graph_.bits_per_item

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

    def recommend(
        self,
        userid: ArrayLike | None = None,
        user_items: Any = None,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> tuple[NDArray[np.int32], Distances]:
        """Return the items nearest to users, best first; of equal ones, the smaller id first.

        Parameters
        ----------
        userid : int or array-like of int, optional
            Whom to recommend to. Without it the rows of ``user_items`` are users that the model need not know.
        user_items : sparse matrix or array-like, shape [U, n_items]; also [n_items] for a single user
            What these users, in this order, have interacted with: ``train[userid]``. What the model keeps when left
            out.
        N : int
            How many items to recommend to each. More than there are items is refused where the answer would take more
            than 1 GiB.
        filter_already_liked_items : bool
            Leave out what a user has interacted with.
        filter_items : array-like of int, optional
            Items to leave out for everybody; they may repeat.
        recalculate_user : bool
            Answer for where ``user_items`` put a user now, not for where it is in the graph.
        items : array-like of int, optional
            The only items to choose from, all when left out; they may repeat.

        Returns
        -------
        ids : ndarray of int32, shape [U, N], or [N] for a single user
        scores : ndarray of float32 of the same shape
            Distances below 0. Where fewer than N items are left, rows end with id -1 and score ``-inf``.

        Raises
        ------
        IndexError
            If a user or an item is none of those the model was fitted to.
        ValueError
            If ``user_items`` is missing or has another shape.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> model = GraphRecommender(random_state=0).fit(np.kron(np.eye(2), np.ones((20, 10))))
        >>> stranger = np.zeros(20)
        >>> stranger[[12, 14]] = 1
        >>> set(model.recommend(user_items=stranger, N=8)[0].tolist()) == {10, 11, 13, 15, 16, 17, 18, 19}
        True
        """
        check_is_fitted(self)
        if userid is None and user_items is None:
            raise ValueError("recommend needs userid, or user_items of users that the model need not know")
        single = np.ndim(userid) == 0 if userid is not None else np.ndim(user_items) == 1
        rows = self._rows(userid, user_items)
        n = check_length(N, rows.size, self.n_items_, "item")
        anew = recalculate_user or userid is None or not self._stores_users
        interacted = self._interacted(rows, user_items) if anew or filter_already_liked_items else None
        blocks = self._blocks(rows) if not anew else self._blocks_of(interacted)
        choice = Choice(
            n,
            interacted if filter_already_liked_items else None,
            None if items is None else np.unique(check_ids("items", items, self.n_items_, "item")),
            None if filter_items is None else check_ids("filter_items", filter_items, self.n_items_, "item"),
        )
        ids, scores = choice.make(blocks, rows)
        return (ids[0], scores[0]) if single else (ids, scores)

    def _rows(self, userid: ArrayLike | None, user_items: Any) -> Ids:
        if userid is not None:
            return check_ids("userid", userid, self.n_users_, "user")
        shape = np.shape(user_items)
        return np.arange(shape[0] if len(shape) == 2 else 1)

    def _interacted(self, rows: Ids, user_items: Any) -> csr_array:
        if user_items is None and self.interactions_ is not None:
            return self.interactions_[rows]
        return self._check_interacted(user_items, rows.size)

    @property
    def _stores_users(self) -> bool:
        return not isinstance(self._answers, Vectors) or self._answers.stores_users

    def explain(self, userid: int, itemid: int, user_items: Any = None) -> Explanation:
        """Return which factors and which of the user's own items speak for an item.

        Parameters
        ----------
        userid, itemid : int
        user_items : sparse matrix or array-like, shape [1, n_items] or [n_items], optional
            What the user interacted with; what the model keeps when left out.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import GraphRecommender
        >>> tastes = np.kron(np.eye(2), np.ones((20, 10)))
        >>> tastes[0, 4:] = 0
        >>> model = GraphRecommender(random_state=0).fit(tastes)
        >>> sorted(item for item, share in model.explain(0, 5).items)
        [0, 1, 2, 3]
        """
        check_is_fitted(self)
        vectors = self._vectors("explain")
        user = check_ids("userid", userid, self.n_users_, "user")
        item = int(check_ids("itemid", itemid, self.n_items_, "item")[0])
        met = self._interacted(user, user_items)
        position = vectors.users(user) if vectors.stores_users else self._positions(met)
        return explain(vectors, position[0], item, met.indices.astype(np.int64), met.data, self.item_labels_)

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
        answers = self._answers
        alike = Alike(answers.graph, "item", answers.n_users, answers.n_items)
        return alike.find(itemid, N, filter_items, items, self.n_jobs)

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
        answers = self._answers
        if not self._stores_users:
            raise ValueError("similar_users needs users in the graph; fit with store_users=True")
        alike = Alike(answers.graph, "user", 0, answers.n_users)
        return alike.find(userid, N, filter_users, users, self.n_jobs)

    def _scores(self, users: Ids) -> Distances:
        answers = self._answers
        if isinstance(answers, Paths):
            return np.asarray(np.negative(answers.distances(users, self.n_jobs)))
        if answers.stores_users:
            return answers.scores(answers.users(users))
        if self.interactions_ is None:
            raise ValueError(
                "users are not stored and interactions are not kept: pass user_items to recommend, or fit with "
                "keep_interactions=True"
            )
        return answers.scores(self._positions(self.interactions_[users]))

    def _positions(self, met: csr_array) -> Distances:
        """Return vectors of users by what they interacted with."""
        vectors = self._vectors("recalculate_user")
        return vectors.placing.solve(met, count_threads(self.n_jobs))[0]

    def _blocks_of(self, met: csr_array | None) -> Iterator[tuple[slice, Distances]]:
        """Yield scores of users by what they interacted with."""
        assert met is not None
        vectors, positions = self._vectors("recalculate_user"), self._positions(met)
        for part in parts(len(positions), _BLOCK // self.n_items_):
            yield part, vectors.scores(positions[part])

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: StrPath) -> None:
        """Write the model to one ``.prodige`` file: the graph, the sizes, the settings, the labels.

        What users interacted with is there, too, where it is kept.

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
        saving.write(path, self)

    @classmethod
    def _from_contents(cls, contents: Contents, n_jobs: int | None) -> Self:
        """Return the model that a file holds; ValueError, TypeError or KeyError if its parts do not fit together."""
        read = saving.decode(contents)
        model = cls(**read.parameters, n_jobs=n_jobs)
        model._become(
            read.answers,
            read.n_users,
            read.user_labels,
            read.item_labels,
            read.interactions,
            history_=[],
            stopped_="finished",
        )
        return model


__all__ = ["EDGES", "GraphRecommender"]
