"""Distance-preserving compression: a data set with a metric becomes a small graph.

What kind of graph depends on the data (:mod:`prodige.compression.selection`). Where paths lead past neighbours (roads,
trees, points of a plane) it is a graph of neighbours, elsewhere a product of graphs or a graph of hubs, whichever is
better on pairs set aside. New items are attached to it (:mod:`prodige.compression.out_of_sample`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prodige._validation import check_integer
from prodige.compression import saving
from prodige.compression.assignment import ProductOutOfSample
from prodige.compression.budget import Budget
from prodige.compression.objective import Objective
from prodige.compression.out_of_sample import FromAnchors, OutOfSample, rows_of
from prodige.compression.parameters import check_data, check_shared, find_budget, settings_of
from prodige.compression.run import Fitted, Run
from prodige.compression.scoring import are_same, score_pairs, score_rows
from prodige.compression.sharing import SharedSource, check_alike
from prodige.compression.streaming import insert_blocks
from prodige.graph import container
from prodige.graph.atomic import StrPath
from prodige.graph.loadable import Loadable
from prodige.graph.product import ProductGraph
from prodige.metric.sources import as_source, is_in_blocks
from prodige.metric.space import Metric, Space
from prodige.progress import Callback
from prodige.ranks import Ranks
from prodige.refitting import refitting
from prodige.threads import one_thread

# Distances of one block: 64 MiB as float32.
_BLOCK = 1 << 24


def has_rows(compressor: DistanceCompressor) -> bool:
    """Say whether rows of later items are enough to add them: of given distances those among new items would lack."""
    if compressor.metric == "precomputed":
        raise AttributeError("partial_fit needs rows, got metric = 'precomputed'; use insert, or fit again")
    return True


class DistanceCompressor(Loadable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Compress a data set into a graph whose shortest paths are its distances.

    Parameters
    ----------
    numbers_per_item : float, optional
        Memory as the paper counts it. Of a graph: one number per vertex and two per edge, hubs included, divided by the
        items. Of a product: a number for each code and each length, and for each coordinate of a hub. At least 3. A
        graph of hubs takes no edges that do not lower its error: where it ends far below, a warning says so.
    bits_per_item : float, optional
        Memory as files count it: the bits of ``graph_.save(path)``, everything included, divided by the items. Exactly
        one of the two is given; when both are left out, 4 numbers an item, which suit a handful of items as well as
        many, while the header of a file alone is more than a handful of items may take in bits.
    metric : str or callable
        Any scikit-learn metric, ``"precomputed"`` for a matrix of distances, or a function of two rows: symmetric,
        and 0 from a row to itself. ``"seuclidean"`` and ``"mahalanobis"`` take variances from the data of the fit.
    n_hubs : int or "auto"
        Virtual vertices to begin with, as far as the budget allows. An integer asks for a graph of hubs whatever the
        data are like; more than 4,634 are refused, as the paths between them take too much memory.
    structure : {"auto", "graph", "product"}
        What to fit: ``"graph"`` one with edges between items and hubs, which can be drawn and listed, ``"product"`` a
        :class:`prodige.ProductGraph`, ``"auto"`` whichever comes out better.
    objective : {"distances", "neighbors"} or float
        What to keep. ``"distances"`` is the mean squared error of all pairs. For ``"neighbors"`` the error of each
        item's nearest 64 counts as much again. A number between 0 and 1 stands between the two. Products follow it in
        all they learn; graphs of hubs and of neighbours are compared by it.
    metric_only : bool
        Whether distances of a product are to be a metric. Without the triangle inequality some metrics that are not
        Euclidean (edit distances, trees) can be kept a little better.
    method : {"budget", "l0"}
        ``"budget"`` fits, and drops the least important edges. ``"l0"`` does as the paper does: neighbours and random
        edges as candidates, each present with a probability that is learned by the score function under a penalty.
    max_time : float, optional
        Seconds for the fit; it then takes as many steps as fit in, instead of a fixed number. Kept within 2 seconds or
        a fifth, unless the least takes longer: distances from 17 items to all of them, and one pass over a first graph.
    memory_limit : int or str, optional
        Bytes that the fit may take beside the data, such as ``"4GB"``: a product is then fitted to a sample that has
        room. Of more than 65,536 items it is fitted to a sample of 50,000 in any case.
        :func:`prodige.estimate_memory` says what a fit takes before it begins.
    random_state : int, RandomState or None
        A seed gives the same graph on the same machine, with any number of threads, unless ``max_time`` is set.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    verbose : int
        Above 0 shows a progress bar.
    callbacks : sequence of callable, optional
        Each is called with a :class:`prodige.progress.Record` after every step; one that returns True ends the fit.
    checkpoint : str or path-like, optional
        A file that the fit of a product leaves now and then, so that another can go on from it with the same result,
        to the bit. It stays when the fit is over.
    checkpoint_interval : float
        Seconds between two of them, at least.
    resume : bool
        Whether to go on from ``checkpoint`` if it is there. One that is damaged, or of other data or settings, is
        refused.

    Attributes
    ----------
    graph_ : Graph or ProductGraph
        The result; all that is needed to ask for distances.
    history_ : list of prodige.progress.Record
        One for each step.
    structure_ : {"product", "hubs", "neighbors", "complete", "star", "l0"}
        What kind of graph it became.
    lambda_ : float
        Only of ``method="l0"``: the penalty that met the budget.
    stopped_ : {"finished", "callback", "interrupt"}
        Why the fit ended. Ctrl-C ends it early but not without a graph.
    anchors_ : ndarray of int, shape [A]
        Items that :meth:`transform` gives the distances to.
    n_features_in_ : int

    Shapes:
        - ``X``: ``[N, D]``, or ``[N, N]`` if ``metric="precomputed"``

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from prodige import DistanceCompressor
    >>> X = load_digits().data[:500]
    >>> compressor = DistanceCompressor(numbers_per_item=4, random_state=0).fit(X)
    >>> compressor.graph_.n_items, compressor.graph_.numbers_per_item <= 4
    (500, True)
    >>> compressor.graph_.distances([0], [1, 2]).shape
    (1, 2)
    """

    _kind = "compressor"

    graph_: Any  # a Graph or a ProductGraph: whoever needs edges knows which

    def __init__(
        self,
        numbers_per_item: float | None = None,
        bits_per_item: float | None = None,
        metric: Metric = "euclidean",
        n_hubs: int | Literal["auto"] = "auto",
        structure: Literal["auto", "graph", "product"] = "auto",
        objective: Objective = "distances",
        metric_only: bool = True,
        method: Literal["budget", "l0"] = "budget",
        max_time: float | None = None,
        memory_limit: int | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: StrPath | None = None,
        checkpoint_interval: float = 60.0,
        resume: bool = False,
    ) -> None:
        self.numbers_per_item = numbers_per_item
        self.bits_per_item = bits_per_item
        self.metric = metric
        self.n_hubs = n_hubs
        self.structure = structure
        self.objective = objective
        self.metric_only = metric_only
        self.method = method
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.resume = resume

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_matrix = self.metric == "precomputed"
        tags.input_tags.pairwise = is_matrix
        tags.input_tags.positive_only = is_matrix
        tags.input_tags.sparse = not is_matrix
        tags.transformer_tags.preserves_dtype = []
        return tags

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, process_group: Any = None) -> DistanceCompressor:
        """Learn a graph from the distances of ``X``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape [N, D], or [N, N] if ``metric="precomputed"``
            At least 3 items. Or what is larger than memory: a memory map, a path to a ``.npy`` or ``.parquet`` file, a
            list of blocks of rows, a function that returns an iterator over such blocks, or any other
            :class:`prodige.metric.sources.Source`.
        y : ignored
        process_group : torch.distributed.ProcessGroup, optional
            Processes that fit one graph together, each given rows of its own in ``X``: the first rank the first rows,
            and so on. All call ``fit`` with the same parameters, and all get the whole graph. A seed gives the same
            one for any number of them. It is no parameter of the class, as it is of no use in a file or a copy.

        Raises
        ------
        ValueError
            If the data or parameters make no sense; the message says which and why.
        prodige.ranks.RankError
            If another process of the group failed or is gone.
        """
        with refitting(self) as fresh, one_thread(), Ranks(process_group).together() as ranks:
            data = X if process_group is None else fresh._shared(X, ranks)
            fresh._become(Run(fresh, time.perf_counter(), ranks).fit(data))
        if self.stopped_ == "interrupt":
            warnings.warn("the fit was interrupted: graph_ is the best so far", ConvergenceWarning, stacklevel=2)
        if self._is_unspent:
            warnings.warn(
                f"{self._budget} is not used up: no more edges were found that lower the "
                f"error, so graph_ has {self.graph_.numbers_per_item:.4g}; give as much, or more hubs than "
                f"{self.graph_.n_vertices - self.graph_.n_items}",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _shared(self, X: Any, ranks: Ranks) -> SharedSource:
        """Return the rows of all ranks, after making sure that they go together and are fitted in the same way."""
        check_alike(ranks, settings_of(self), "parameters")
        check_shared(self)
        return SharedSource(as_source(X), ranks)

    def _become(self, fitted: Fitted) -> None:
        """Take on what came of a fit."""
        learned = fitted.learned
        self.graph_ = learned.graph
        self.structure_: str = learned.structure
        self.history_ = learned.history
        self.stopped_ = learned.stopped
        self.anchors_ = fitted.anchors
        if learned.lambda_ is not None:
            self.lambda_ = learned.lambda_
        self._anchor_rows = fitted.anchor_rows
        self._parameters = fitted.parameters
        self._unit = fitted.unit
        self._is_unspent = learned.is_unspent

    @property
    def _budget(self) -> Budget:
        """What was asked for."""
        return find_budget(self)

    # -- what is learned ---------------------------------------------------------------------------------------------

    def pairwise_distances(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield the graph distances of all items, ``(rows, distances)`` for a block of rows at a time.

        Examples
        --------
        >>> from prodige import DistanceCompressor
        >>> compressor = DistanceCompressor(random_state=0).fit([[0.0], [1.0], [3.0]])
        >>> [distances.shape for rows, distances in compressor.pairwise_distances()]
        [(3, 3)]
        """
        check_is_fitted(self)
        n = self.graph_.n_items
        for rows in gen_batches(n, max(1, _BLOCK // n)):
            yield rows, self.graph_.distances(np.arange(rows.start, rows.stop), n_jobs=self.n_jobs)

    def kneighbors(
        self, X: Any = None, n_neighbors: int = 5, return_distance: bool = True
    ) -> NDArray[np.int64] | tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the nearest items by graph distance, as scikit-learn's ``NearestNeighbors`` does.

        Parameters
        ----------
        X : array-like, optional
            New rows; when left out, the neighbours of every item but itself.
        n_neighbors : int
        return_distance : bool

        Examples
        --------
        >>> from prodige import DistanceCompressor
        >>> compressor = DistanceCompressor(random_state=0).fit([[0.0], [1.0], [3.0]])
        >>> compressor.kneighbors(n_neighbors=1, return_distance=False)
        array([[1],
               [0],
               [1]])
        """
        check_is_fitted(self)
        graph = self.graph_
        if X is None:
            distances, neighbors = graph.kneighbors(k=n_neighbors, n_jobs=self.n_jobs)
        else:
            k = check_integer("n_neighbors", n_neighbors, 1, graph.n_items)
            X = check_data(self, X, reset=False)
            found = [nearest(rows, k) for rows in self._out_of_sample().distances(X, np.arange(graph.n_items))]
            distances, neighbors = (np.concatenate(part) for part in zip(*found, strict=True))
        return (distances, neighbors) if return_distance else neighbors

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative mean squared error of the graph's distances.

        Of the items it was fitted to, in the same order: over all pairs, or where there are more than 65,536 items over
        those of some with all. Of any others: over the distances to the anchors that :meth:`transform` gives, so that
        ``GridSearchCV`` and the like work.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape [M, D], or [M, N] if ``metric="precomputed"``
        y : ignored

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GridSearchCV
        >>> from prodige import DistanceCompressor
        >>> X = np.random.default_rng(0).normal(size=(200, 8))
        >>> search = GridSearchCV(DistanceCompressor(random_state=0), {"numbers_per_item": [3, 8]}, cv=2).fit(X)
        >>> search.best_params_
        {'numbers_per_item': 8}
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        with one_thread():
            if self._is_fitted_data(X):
                return score_pairs(self.graph_, Space(X, self.metric, self._unit, self.n_jobs, self._parameters))
            return score_rows(self._transform(X), self._out_of_sample().to_anchors(X), self._unit)

    def _is_fitted_data(self, X: Any) -> bool:
        """Whether these are the items of the fit in their order, as far as the anchors tell."""
        has_all = X.shape[0] == self.graph_.n_items
        return has_all and are_same(rows_of(self.anchors_, X, self.metric), self._anchor_rows)

    # -- new items ---------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the graph distances of rows to the anchors, shape [M, A]; each row by itself.

        A row is attached to the graph by its distances to the anchors, with as many edges as the budget allows an
        item.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape [M, D], or [M, N] if ``metric="precomputed"``
        """
        check_is_fitted(self)
        return self._transform(check_data(self, X, reset=False))

    def _transform(self, X: Any) -> NDArray[np.float32]:
        return np.concatenate(list(self._out_of_sample().distances(X, self.anchors_)))

    def insert(self, X: Any) -> Any:
        """Return a graph with new items attached, each within the budget per item; this estimator stays as it is.

        The new items come after the old ones and, in a graph, before the hubs.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape [M, D], or [M, N] if ``metric="precomputed"``
            Where the graph is a product, also rows in blocks, as of :meth:`fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import DistanceCompressor
        >>> X = np.random.default_rng(0).normal(size=(200, 8))
        >>> compressor = DistanceCompressor(random_state=0).fit(X[:190])
        >>> compressor.insert(X[190:]).n_items
        200
        """
        check_is_fitted(self)
        placing = self._out_of_sample()
        if isinstance(placing, OutOfSample):
            return placing.insert(check_data(self, X, reset=False))
        source = as_source(X if is_in_blocks(X) else check_data(self, X, reset=False))
        if source.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {source.n_features} features, but DistanceCompressor is expecting {self.n_features_in_} "
                "features as input"
            )
        return insert_blocks(source, placing, self.verbose)

    @available_if(has_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> DistanceCompressor:
        """Add new items to ``graph_`` without learning anything anew: what :meth:`insert` returns takes its place.

        :meth:`score` of the new items says how far they are from what was learned: compare it with that of the first
        ones, and fit again where it has fallen far behind.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or rows in blocks, shape [M, D]
        y : ignored

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import DistanceCompressor
        >>> X = np.random.default_rng(0).normal(size=(200, 8))
        >>> compressor = DistanceCompressor(random_state=0).fit(X[:190])
        >>> compressor.partial_fit(X[190:]).graph_.n_items
        200
        """
        if not hasattr(self, "graph_"):
            return self.fit(X)
        self.graph_ = self.insert(X)
        return self

    def remove(self, items: ArrayLike) -> Any:
        """Return the graph without some items; this estimator stays as it is.

        Distances between the others stay as they are. Items that come after are counted anew.

        Parameters
        ----------
        items : array-like of int

        Examples
        --------
        >>> import numpy as np
        >>> from prodige import DistanceCompressor
        >>> X = np.random.default_rng(0).normal(size=(200, 8))
        >>> DistanceCompressor(random_state=0).fit(X).remove([3, 5]).n_items
        198
        """
        check_is_fitted(self)
        return self.graph_.remove(items)

    def _out_of_sample(self) -> OutOfSample | ProductOutOfSample:
        """Return what attaches new rows to the graph."""
        from_anchors = FromAnchors(
            self.anchors_, self._anchor_rows, self.metric, self._parameters, self._unit, self.n_jobs
        )
        if isinstance(self.graph_, ProductGraph):
            return ProductOutOfSample(self.graph_, from_anchors)
        return OutOfSample(self.graph_, from_anchors, self._budget.numbers_of_edges(self.graph_.n_items))

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: StrPath) -> None:
        """Write the compressor to one ``.prodige`` file: the graph, and what placing new items takes.

        The graph alone takes less room: ``compressor.graph_.save``.

        Parameters
        ----------
        path : str or path-like
            A file that is there is replaced in one step, or stays as it was.

        Raises
        ------
        ValueError
            If ``metric`` is a function: files hold no code.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from prodige import DistanceCompressor
        >>> X = np.random.default_rng(0).normal(size=(200, 8))
        >>> compressor = DistanceCompressor(random_state=0).fit(X[:190])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     compressor.save(f"{directory}/points.prodige")
        ...     loaded = DistanceCompressor.load(f"{directory}/points.prodige")
        >>> bool((loaded.transform(X[190:]) == compressor.transform(X[190:])).all())
        True
        """
        check_is_fitted(self)
        container.write(path, "compressor", *saving.encode(self))

    @classmethod
    def _from_contents(cls, contents: container.Contents, n_jobs: int | None) -> Self:
        """Return the compressor that a file holds; ValueError, TypeError or KeyError if its parts do not fit."""
        parameters, fitted = saving.decode(contents)
        compressor = cls(**parameters, n_jobs=n_jobs)
        compressor.__dict__.update(fitted)
        return compressor

    @property
    def _n_features_out(self) -> int:
        return int(self.anchors_.size)


def nearest(distances: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the ``k`` smallest of each row and where they are, ascending."""
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order
