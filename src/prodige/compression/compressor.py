"""Distance-preserving compression: a data set with a metric becomes a small graph.

What kind of graph depends on the data (:mod:`prodige.compression.selection`). Where paths lead past neighbours (roads,
trees, points of a plane) it is a graph of neighbours, elsewhere a product of graphs or a graph of hubs, whichever is
better on pairs set aside. New items are attached to it (:mod:`prodige.compression.out_of_sample`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from prodige._validation import check_integer
from prodige.compression import saving
from prodige.compression.assignment import ProductOutOfSample
from prodige.compression.budget import Budget, check_structure
from prodige.compression.checkpoints import Checkpoint, Fit, check_checkpoint
from prodige.compression.hubs import check_memory, most_hubs
from prodige.compression.memory import Estimate, Sizing, parse_bytes
from prodige.compression.neighbors import looks_local
from prodige.compression.objective import Objective, near_weight
from prodige.compression.out_of_sample import FromAnchors, OutOfSample
from prodige.compression.sampling import Sample, check_sampled, fit_sampled
from prodige.compression.selection import Selection
from prodige.compression.sharing import SharedSource, check_alike, digest_of
from prodige.compression.streaming import insert_blocks
from prodige.graph import container
from prodige.graph.atomic import StrPath
from prodige.graph.graph import Graph
from prodige.graph.loadable import Loadable
from prodige.graph.product import ProductGraph
from prodige.metric.duplicates import add_copies, find_copies, row_keys, source_keys
from prodige.metric.sources import Source, as_source, is_in_blocks
from prodige.metric.space import Metric, Space, check_metric, in_units, largest, natural_unit
from prodige.progress import Callback, Record, check_callbacks
from prodige.ranks import ALONE, Ranks
from prodige.refitting import refitting
from prodige.threads import count_threads, one_thread

# The budget where none is given, in numbers an item.
_NUMBERS = 4.0

# Items whose distances say where a new one belongs, and what `transform` measures to.
_N_ANCHORS = 256

# Items that say whether a graph of neighbours may suit many more.
_N_LOOKED_AT = 20_000

# Pairs that a score is made of, at most: all of 65,536 items.
_MOST_SCORED = 1 << 32

# By how much data may differ and still be the same, as a part of the largest number: rounding to single precision.
_SAME = 1e-6

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
            fresh._fit(X if process_group is None else fresh._shared(X, ranks), ranks)
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
        check_alike(ranks, self._settings(), "parameters")
        for name, is_wrong, why in (
            ("metric", self.metric == "precomputed", "has a column for each item of all ranks; give their rows"),
            ("method", self.method == "l0", "is learned by one process; leave process_group out"),
            ("max_time", self.max_time is not None, "is up at other steps on other ranks; leave it out"),
        ):
            if is_wrong:
                raise ValueError(f"{name} = {getattr(self, name)!r} {why}")
        return SharedSource(as_source(X), ranks)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that the result depends on, as a file can hold them."""
        values = {name: getattr(self, name) for name in (*saving.PARAMETERS, "memory_limit", "random_state")}
        plain = (str, bool, int, float, type(None))
        # Of what is no plain value, such as a function or a generator, there is only the kind to compare.
        return {name: value if isinstance(value, plain) else type(value).__name__ for name, value in values.items()}

    def _fit(self, X: Any, ranks: Ranks) -> None:
        start = time.perf_counter()
        self._is_unspent = False
        if is_in_blocks(X):
            X = as_source(X)
            if X.n_items > 2 and not self._sizing(X, ranks).is_whole:
                self._fit_sampled(X, start, ranks)
                return
            X = X.take(np.arange(X.n_items))
        X = self._check_data(X, reset=True)
        n = X.shape[0]
        if n < 3:
            raise ValueError(f"X must have at least 3 items, got {n} sample(s)")
        self._check_parameters(n)
        if self._is_sampled(X, ranks):
            self._fit_sampled(as_source(X), start, ranks)
            return
        space = Space(X, self.metric, n_jobs=self.n_jobs)
        check_metric(space)
        checkpoint = self._checkpoint(X.shape, lambda: row_keys(X), ranks)
        random = checkpoint.begin(check_random_state(self.random_state), self.resume)
        # A function may be slow, and the longest distance from one item is half of the longest at least.
        self._unit = natural_unit(space, 1 if callable(self.metric) else 16)
        space = space.in_unit(self._unit)
        if self.method == "l0":
            self._fit_l0(space, random)
        else:
            self._fit_budget(space, random, start, ranks, checkpoint)
        self._leave_unit()
        self._keep_anchors(space, random)

    def _checkpoint(self, shape: tuple[int, int], keys: Callable[[], NDArray[np.uint64]], ranks: Ranks) -> Checkpoint:
        """Return where the fit of rows with such keys goes on from, and what it leaves behind."""
        if self.checkpoint is None:
            return Checkpoint(None, 0.0, ranks=ranks)
        data = {"n_items": shape[0], "n_features": shape[1], "digest": digest_of(keys())}
        return Checkpoint(self.checkpoint, self.checkpoint_interval, Fit(self._settings(), data), ranks)

    def _fit_budget(
        self, space: Space, random: np.random.RandomState, start: float, ranks: Ranks, checkpoint: Checkpoint
    ) -> None:
        first, copy_of = find_copies(space)
        unique = space if first.size == space.n_items else space.take(first)
        selection = self._selection(start, ranks, checkpoint)
        selected = selection.fit(unique, self._budget.without_copies(space.n_items, first.size), random)
        self.graph_ = selected.graph if unique is space else add_copies(selected.graph, first, copy_of)
        self.structure_: str = selected.structure
        self.history_ = selected.monitor.history
        self.stopped_ = selected.monitor.stopped
        self._is_unspent = selected.is_unspent

    def _selection(self, start: float, ranks: Ranks, checkpoint: Checkpoint) -> Selection:
        """Return how graphs are fitted."""
        return Selection(
            self._budget,
            self.n_hubs,
            self.structure,
            near_weight(self.objective),
            self.metric_only,
            self.max_time,
            self._callbacks(),
            self.verbose if ranks.rank == 0 else 0,
            self.n_jobs,
            start,
            ranks=ranks,
            checkpoint=checkpoint,
        )

    def _sizing(self, X: Any, ranks: Ranks = ALONE) -> Estimate:
        """Return what a fit of a product to this many items takes, and to which sample of them it is."""
        n_items, n_features = (X.n_items, X.n_features) if isinstance(X, Source) else X.shape
        limit = None if self.memory_limit is None else parse_bytes("memory_limit", self.memory_limit)
        has_near = near_weight(self.objective) > 0
        sizing = Sizing(n_items, n_features, self._budget, has_near)
        return ranks.gather(sizing.within(limit, count_threads(self.n_jobs)))[0]

    def _is_sampled(self, X: Any, ranks: Ranks) -> bool:
        """Whether a product is to be fitted to a sample of rows in memory: not where a graph of neighbours may suit."""
        wants_graph = self.structure == "graph" or self.n_hubs != "auto" or self.method == "l0"
        if wants_graph and self.memory_limit is not None:
            raise ValueError(
                f"memory_limit = {self.memory_limit!r} is for products, and structure, n_hubs or method ask for a "
                "graph with edges; leave it out"
            )
        if wants_graph or self.metric == "precomputed":
            return False
        sizes = self._sizing(X, ranks)
        if sizes.is_whole or self.structure == "product" or self.memory_limit is not None:
            return not sizes.is_whole
        some = np.linspace(0, X.shape[0] - 1, _N_LOOKED_AT).astype(np.int64)
        return not looks_local(Space(X[some], self.metric, n_jobs=self.n_jobs), np.random.RandomState(0))

    def _fit_sampled(self, source: Source, start: float, ranks: Ranks) -> None:
        """Fit a product to some rows of a source, and give all rows their codes."""
        self._check_parameters(source.n_items)
        check_sampled(self, source)
        keys = source.keys if isinstance(source, SharedSource) else source_keys(source)
        checkpoint = self._checkpoint((source.n_items, source.n_features), lambda: keys, ranks)
        random = checkpoint.begin(check_random_state(self.random_state), self.resume)
        sizes = self._sizing(source, ranks)
        sample = Sample.draw(source, keys, sizes.n_sample, random)
        rows = self._check_data(sample.rows(), reset=True)
        space = Space(rows, self.metric, n_jobs=self.n_jobs)
        check_metric(space)
        self._unit = natural_unit(space)
        if self._unit != 1:
            raise ValueError(
                f"distances of X are near {self._unit:.1e}, and a product of so many items needs them nearer to 1; "
                "divide X by a constant"
            )
        self._budget.check(source.n_items)
        selection = replace(self._selection(start, ranks, checkpoint), structure="product", n_items=sample.n_distinct)
        if self.max_time is not None:  # the pass over all items comes after
            selection = replace(selection, max_time=max(self.max_time - sizes.seconds_of_pass, self.max_time / 4))
        budget = self._budget.without_copies(source.n_items, sample.n_distinct)
        result = fit_sampled(selection, sample, space, sizes, budget, random)
        self.graph_, self.structure_, self.history_ = result.graph, "product", result.history
        self.stopped_ = result.selected.monitor.stopped
        self.anchors_ = result.anchors
        self._anchor_rows = result.placing.from_anchors.rows
        self._parameters = space.parameters

    def _fit_l0(self, space: Space, random: np.random.RandomState) -> None:
        from prodige.compression.paper.l0 import fit_l0

        assert self._budget.numbers is not None
        result = fit_l0(
            space,
            self._budget.numbers,
            random,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            callbacks=self._callbacks(),
            max_time=self.max_time,
        )
        self.graph_ = result.graph
        self.history_ = result.history
        self.lambda_ = result.lambda_
        self.stopped_ = result.stopped
        self.structure_ = "l0"

    @property
    def _budget(self) -> Budget:
        """What was asked for."""
        numbers = _NUMBERS if self.numbers_per_item is None and self.bits_per_item is None else self.numbers_per_item
        return Budget(numbers, self.bits_per_item)

    def _callbacks(self) -> Sequence[Callback]:
        """Return the callbacks, made to hear of losses in the data's own squared distances."""
        callbacks = check_callbacks(self.callbacks)
        if self._unit == 1:
            return callbacks

        def rephrased(callback: Callback) -> Callback:
            return lambda record: callback(self._in_units_of_data(record))

        return [rephrased(callback) for callback in callbacks]

    def _leave_unit(self) -> None:
        """Go back from the unit of the fit to that of the data."""
        unit = self._unit
        if unit == 1:
            return
        graph = self.graph_
        assert isinstance(graph, Graph)  # squares of such distances are beyond single precision: no product was tried
        edges = graph.edges
        self.graph_ = Graph.from_edges(
            edges.i, edges.j, edges.weight * unit, n_vertices=graph.n_vertices, n_items=graph.n_items
        )
        self.history_ = [self._in_units_of_data(record) for record in self.history_]
        if self.method == "l0":
            self.lambda_ *= unit**2

    def _in_units_of_data(self, record: Record) -> Record:
        """Return a record with losses in the data's own squared distances."""
        square = self._unit**2
        lambda_ = None if record.lambda_ is None else record.lambda_ * square
        return replace(record, loss=record.loss * square, lambda_=lambda_)

    def _check_data(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=1
        )

    def _check_parameters(self, n_items: int) -> None:
        if self.method not in ("budget", "l0"):
            raise ValueError(f"method must be 'budget' or 'l0', got {self.method!r}")
        limit = self.max_time
        if limit is not None and not (isinstance(limit, (int, float, np.number)) and 0 < limit < math.inf):
            raise ValueError(f"max_time must be a number of seconds above 0, got {limit!r}")
        count_threads(self.n_jobs)
        check_callbacks(self.callbacks)
        check_structure(self.structure, self.n_hubs, self.method)
        near_weight(self.objective)
        check_checkpoint(self.checkpoint, self.checkpoint_interval, self.resume)
        if self.checkpoint is not None and (self.max_time is not None or self.method == "l0"):
            name = "max_time" if self.max_time is not None else "method"
            raise ValueError(
                f"checkpoint is of a product in steps that are counted, which {name} = "
                f"{getattr(self, name)!r} is not; leave one of the two out"
            )
        if not isinstance(self.metric_only, (bool, np.bool_)):
            raise TypeError(f"metric_only must be True or False, got {self.metric_only!r}")
        self._budget.check(n_items)
        if self.method == "l0" and self.bits_per_item is not None:
            raise ValueError("method 'l0' counts numbers, as the paper does; give numbers_per_item, not bits_per_item")
        numbers = self._budget.numbers_of_edges(n_items)
        if self.n_hubs != "auto":
            n_hubs = check_integer("n_hubs", self.n_hubs, 1, n_items)
            check_memory(min(n_hubs, most_hubs(n_items, numbers)))

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
            X = self._check_data(X, reset=False)
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
        X = self._check_data(X, reset=False)
        with one_thread():
            return self._score_fitted(X) if self._is_fitted_data(X) else self._score_new(X)

    def _score_fitted(self, X: Any) -> float:
        space, total = self._space(X), 0.0
        n_sources = min(space.n_items, max(_MOST_SCORED // space.n_items, 1))
        sources = np.linspace(0, space.n_items - 1, n_sources).astype(np.int64)
        for rows, distances in space.blocks(sources):
            residual = in_units(self.graph_.distances(rows, n_jobs=self.n_jobs), self._unit) - distances
            total += float((residual.astype(np.float64) ** 2).sum())
        return -total * self._unit**2 / (n_sources * (space.n_items - 1))

    def _score_new(self, X: Any) -> float:
        residual = in_units(self._transform(X), self._unit) - self._out_of_sample().to_anchors(X)
        return -float((residual.astype(np.float64) ** 2).mean()) * self._unit**2

    def _is_fitted_data(self, X: Any) -> bool:
        """Whether these are the items of the fit in their order, as far as the anchors tell."""
        if X.shape[0] != self.graph_.n_items:
            return False
        difference = self._rows_of_anchors(X) - self._anchor_rows
        return largest(difference) <= _SAME * largest(self._anchor_rows)

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
        return self._transform(self._check_data(X, reset=False))

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
            return placing.insert(self._check_data(X, reset=False))
        source = as_source(X if is_in_blocks(X) else self._check_data(X, reset=False))
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

    def _keep_anchors(self, space: Space, random: np.random.RandomState) -> None:
        self.anchors_ = np.sort(random.permutation(space.n_items)[:_N_ANCHORS])
        self._anchor_rows = self._rows_of_anchors(space.X)
        self._parameters = space.parameters

    def _rows_of_anchors(self, X: Any) -> Any:
        """Return the rows of the anchors in the data of the fit, among themselves where these are distances."""
        return X[np.ix_(self.anchors_, self.anchors_)] if self.metric == "precomputed" else X[self.anchors_]

    def _space(self, X: Any) -> Space:
        """Return rows as a space with the unit and the metric of the fit."""
        return Space(X, self.metric, self._unit, self.n_jobs, self._parameters)


def nearest(distances: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the ``k`` smallest of each row and where they are, ascending."""
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order
