"""One run of a fit: from the data and the parameters of a compressor to a graph, and what placing new items takes.

A run is of all items at once, or learns a product from a sample and gives all items their places in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from prodige.compression.budget import AnyGraph
from prodige.compression.checkpoints import Checkpoint, Fit
from prodige.compression.memory import Estimate, estimate_memory
from prodige.compression.neighbors import looks_local
from prodige.compression.objective import near_weight
from prodige.compression.out_of_sample import rows_of
from prodige.compression.parameters import check_data, check_parameters, find_budget, settings_of
from prodige.compression.sampling import Sample, check_sampled, fit_sampled
from prodige.compression.selection import Selection, Structure
from prodige.compression.sharing import SharedSource, digest_of
from prodige.compression.units import rescale_callbacks, rescale_graph, rescale_record
from prodige.graph.graph import Graph
from prodige.metric.duplicates import add_copies, find_copies, row_keys, source_keys
from prodige.metric.sources import Source, as_source, is_in_blocks
from prodige.metric.space import Space, check_metric, natural_unit
from prodige.progress import Callback, Record, Stopped, check_callbacks
from prodige.ranks import ALONE, Ranks

if TYPE_CHECKING:
    from prodige.compression.compressor import DistanceCompressor

# Items whose distances say where a new one belongs, and what `transform` measures to.
_N_ANCHORS = 256

# Items that say whether a graph of neighbours may suit many more.
_N_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Learned:
    """What came of a fit, in the unit that it measured in.

    Attributes
    ----------
    graph : Graph or ProductGraph
    structure : str
        What kind of graph it is.
    history : list of Record
        One for each step.
    stopped : {"finished", "callback", "interrupt"}
    lambda_ : float, optional
        The penalty that met the budget, where there was one.
    is_unspent : bool
        Whether much of the budget is left.
    """

    graph: AnyGraph
    structure: Structure
    history: list[Record]
    stopped: Stopped
    lambda_: float | None = None
    is_unspent: bool = False

    def rescaled(self, unit: float) -> Learned:
        """Return the same in the unit of the data."""
        if unit == 1:
            return self
        assert isinstance(self.graph, Graph)  # squares of such distances are beyond single precision: no product
        return replace(
            self,
            graph=rescale_graph(self.graph, unit),
            history=[rescale_record(record, unit) for record in self.history],
            lambda_=None if self.lambda_ is None else self.lambda_ * unit**2,
        )


@dataclass(frozen=True)
class Fitted:
    """All that a compressor keeps of a fit: what was learned, and by which items new ones are placed.

    Attributes
    ----------
    learned : Learned
        In the unit of the data.
    unit : float
        What distances were measured in.
    anchors : ndarray of int64, shape [A]
    anchor_rows : array or sparse matrix
        Their rows in the data, among themselves where these are distances.
    parameters : dict
        What the metric took from the data.
    """

    learned: Learned
    unit: float
    anchors: NDArray[np.int64]
    anchor_rows: Any
    parameters: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Run:
    """One run of a fit.

    Attributes
    ----------
    model : DistanceCompressor
        Whose parameters it follows; nothing but what is known of its columns is set.
    start : float
        When it began, by ``time.perf_counter``.
    ranks : Ranks
        Processes that share it.

    Examples
    --------
    >>> import time
    >>> from prodige import DistanceCompressor
    >>> from prodige.compression.run import Run
    >>> fitted = Run(DistanceCompressor(random_state=0), time.perf_counter()).fit([[0.0], [1.0], [3.0]])
    >>> fitted.learned.structure, fitted.learned.graph.distance(0, 2), fitted.anchors
    ('complete', 3.0, array([0, 1, 2]))
    """

    model: DistanceCompressor
    start: float
    ranks: Ranks = ALONE

    def fit(self, X: Any) -> Fitted:
        """Fit a graph to rows, distances or a source, whole or to a sample."""
        if is_in_blocks(X):
            source = as_source(X)
            if source.n_items > 2 and not self.estimate(source.n_items, source.n_features).is_whole:
                return self._fit_sampled(source)
            X = source.take(np.arange(source.n_items))
        X = check_data(self.model, X, reset=True)
        n = X.shape[0]
        if n < 3:
            raise ValueError(f"X must have at least 3 items, got {n} sample(s)")
        check_parameters(self.model, n)
        return self._fit_sampled(as_source(X)) if self._is_sampled(X) else self._fit_whole(X)

    def estimate(self, n_items: int, n_features: int) -> Estimate:
        """Return what a fit of a product to this many items takes, and to which sample of them it is."""
        model = self.model
        estimate = estimate_memory(
            n_items,
            n_features,
            numbers_per_item=model.numbers_per_item,
            bits_per_item=model.bits_per_item,
            objective=model.objective,
            memory_limit=model.memory_limit,
            n_jobs=model.n_jobs,
        )
        return self.ranks.gather(estimate)[0]

    def _is_sampled(self, X: Any) -> bool:
        """Whether a product is to be fitted to a sample of rows in memory: not where a graph of neighbours may suit."""
        model = self.model
        wants_graph = model.structure == "graph" or model.n_hubs != "auto" or model.method == "l0"
        if wants_graph and model.memory_limit is not None:
            raise ValueError(
                f"memory_limit = {model.memory_limit!r} is for products, and structure, n_hubs or method ask for a "
                "graph with edges; leave it out"
            )
        if wants_graph or model.metric == "precomputed":
            return False
        is_whole = self.estimate(*X.shape).is_whole
        if is_whole or model.structure == "product" or model.memory_limit is not None:
            return not is_whole
        some = np.linspace(0, X.shape[0] - 1, _N_LOOKED_AT).astype(np.int64)
        return not looks_local(Space(X[some], model.metric, n_jobs=model.n_jobs), np.random.RandomState(0))

    # -- all items at once -------------------------------------------------------------------------------------------

    def _fit_whole(self, X: Any) -> Fitted:
        model = self.model
        space = Space(X, model.metric, n_jobs=model.n_jobs)
        check_metric(space)
        checkpoint = self._checkpoint(X.shape, lambda: row_keys(X))
        random = checkpoint.begin(check_random_state(model.random_state), model.resume)
        # A function may be slow, and the longest distance from one item is half of the longest at least.
        unit = natural_unit(space, 1 if callable(model.metric) else 16)
        space = space.in_unit(unit)
        learned = self._learn_l0(space, random) if model.method == "l0" else self._learn(space, random, checkpoint)
        learned = learned.rescaled(unit)
        anchors = np.sort(random.permutation(space.n_items)[:_N_ANCHORS])
        return Fitted(learned, unit, anchors, rows_of(anchors, space.X, model.metric), space.parameters)

    def _learn(self, space: Space, random: np.random.RandomState, checkpoint: Checkpoint) -> Learned:
        first, copy_of = find_copies(space)
        unique = space if first.size == space.n_items else space.take(first)
        selection = self._selection(checkpoint, space.unit)
        budget = find_budget(self.model).without_copies(space.n_items, first.size)
        selected = selection.fit(unique, budget, random)
        graph = selected.graph if unique is space else add_copies(selected.graph, first, copy_of)
        monitor = selected.monitor
        return Learned(graph, selected.structure, monitor.history, monitor.stopped, is_unspent=selected.is_unspent)

    def _learn_l0(self, space: Space, random: np.random.RandomState) -> Learned:
        from prodige.compression.paper.l0 import fit_l0

        model, budget = self.model, find_budget(self.model)
        assert budget.numbers is not None
        result = fit_l0(
            space,
            budget.numbers,
            random,
            n_jobs=model.n_jobs,
            verbose=model.verbose,
            callbacks=self._callbacks(space.unit),
            max_time=model.max_time,
        )
        return Learned(result.graph, "l0", result.history, result.stopped, result.lambda_)

    # -- a sample ----------------------------------------------------------------------------------------------------

    def _fit_sampled(self, source: Source) -> Fitted:
        """Fit a product to some rows of a source, and give all rows their codes."""
        model = self.model
        check_parameters(model, source.n_items)
        check_sampled(model, source)
        keys = source.keys if isinstance(source, SharedSource) else source_keys(source)
        checkpoint = self._checkpoint((source.n_items, source.n_features), lambda: keys)
        random = checkpoint.begin(check_random_state(model.random_state), model.resume)
        sizes = self.estimate(source.n_items, source.n_features)
        sample = Sample.draw(source, keys, sizes.n_sample, random)
        rows = check_data(model, sample.rows(), reset=True)
        space = Space(rows, model.metric, n_jobs=model.n_jobs)
        check_metric(space)
        unit = natural_unit(space)
        if unit != 1:
            raise ValueError(
                f"distances of X are near {unit:.1e}, and a product of so many items needs them nearer to 1; "
                "divide X by a constant"
            )
        selection = replace(self._selection(checkpoint, unit), structure="product", n_items=sample.n_distinct)
        if model.max_time is not None:  # the pass over all items comes after
            selection = replace(selection, max_time=max(model.max_time - sizes.seconds_of_pass, model.max_time / 4))
        budget = find_budget(model).without_copies(source.n_items, sample.n_distinct)
        result = fit_sampled(selection, sample, space, sizes, budget, random)
        learned = Learned(result.graph, "product", result.history, result.selected.monitor.stopped)
        return Fitted(learned, unit, result.anchors, result.placing.from_anchors.rows, space.parameters)

    # -- what both take ----------------------------------------------------------------------------------------------

    def _selection(self, checkpoint: Checkpoint, unit: float) -> Selection:
        """Return how graphs are fitted."""
        model = self.model
        return Selection(
            find_budget(model),
            model.n_hubs,
            model.structure,
            near_weight(model.objective),
            model.metric_only,
            model.max_time,
            self._callbacks(unit),
            model.verbose if self.ranks.rank == 0 else 0,
            model.n_jobs,
            self.start,
            ranks=self.ranks,
            checkpoint=checkpoint,
        )

    def _checkpoint(self, shape: tuple[int, int], keys: Callable[[], NDArray[np.uint64]]) -> Checkpoint:
        """Return where the fit of rows with such keys goes on from, and what it leaves behind."""
        model = self.model
        if model.checkpoint is None:
            return Checkpoint(None, 0.0, ranks=self.ranks)
        data = {"n_items": shape[0], "n_features": shape[1], "digest": digest_of(keys())}
        return Checkpoint(model.checkpoint, model.checkpoint_interval, Fit(settings_of(model), data), self.ranks)

    def _callbacks(self, unit: float) -> Sequence[Callback]:
        """Return the callbacks, made to hear of losses in squared distances of the data."""
        return rescale_callbacks(check_callbacks(self.model.callbacks), unit)
