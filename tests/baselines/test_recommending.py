"""What every baseline for recommendation must do, whatever it is made of."""

from __future__ import annotations

import inspect
import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from prodige.baselines import (
    ALS,
    BPR,
    EASE,
    IALS,
    SVD,
    ItemKNN,
    MetricLearning,
    Popularity,
    RecommenderBaseline,
)
from prodige.recommendation.interactions import Recommender
from prodige.recommendation.ranking import evaluate_ranking, split_leave_one_out
from strategies import many

# Users of three circles with items of their own, and now and then one of another circle.
RNG = np.random.default_rng(0)
CIRCLES = np.kron(np.eye(3), np.ones((20, 10))).astype(bool)
USER_ITEMS = csr_array(np.where(CIRCLES, RNG.random((60, 30)) < 0.5, RNG.random((60, 30)) < 0.05).astype(np.float32))

BASELINES: list[RecommenderBaseline] = [
    Popularity(),
    SVD(3, random_state=0),
    ALS(3, random_state=0),
    BPR(4, learning_rate=0.1, random_state=0),
    MetricLearning(2, batch_size=10, random_state=0),
    ItemKNN(8),
    EASE(5.0),
    IALS(3, alpha=0.1, random_state=0),
]


def every_score(model: Recommender) -> NDArray[np.float32]:
    return model.scores(np.arange(model.n_users_))


def generators() -> tuple[bytes, bytes]:
    return pickle.dumps(np.random.get_state()), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002


@pytest.mark.parametrize("unfitted", BASELINES, ids=lambda model: type(model).__name__)
class TestRecommender:
    @pytest.fixture
    def model(self, unfitted: RecommenderBaseline) -> RecommenderBaseline:
        return clone(unfitted).fit(USER_ITEMS)  # type: ignore[no-any-return]

    def test_parameters_are_only_stored(self, unfitted: RecommenderBaseline) -> None:
        marks = {name: object() for name in inspect.signature(type(unfitted)).parameters}
        assert type(unfitted)(**marks).get_params() == marks
        with pytest.raises(NotFittedError):
            unfitted.scores([0])
        with pytest.raises(NotFittedError):
            unfitted.recommend([0], USER_ITEMS[[0]])

    def test_fit_returns_the_model(self, unfitted: RecommenderBaseline) -> None:
        model = clone(unfitted)
        assert model.fit(USER_ITEMS) is model
        assert (model.n_users_, model.n_items_, model.n_features_in_) == (60, 30, 30)
        assert model.get_params() == unfitted.get_params()

    def test_scores(self, model: RecommenderBaseline) -> None:
        every = every_score(model)
        assert every.dtype == np.float32
        assert every.shape == (60, 30)
        assert np.isfinite(every).all()
        assert_allclose(model.scores([5, 2, 5], [7, 0]), every[np.ix_([5, 2, 5], [7, 0])], rtol=1e-4, atol=1e-5)

    def test_answers_belong_to_the_caller(self, model: RecommenderBaseline) -> None:
        before = every_score(model)
        model._scores(np.array([0]))[:] = 7
        model.recommend(np.arange(60), USER_ITEMS)
        assert_array_equal(every_score(model), before)

    def test_learns_the_circles(self, model: RecommenderBaseline, unfitted: RecommenderBaseline) -> None:
        train, held_out = split_leave_one_out(USER_ITEMS, random_state=0)
        report = evaluate_ranking(clone(unfitted).fit(train), train, held_out, k=10)
        if not isinstance(unfitted, Popularity):
            assert report.full.hit_ratio[10] > 0.6
            ids, _ = model.recommend(np.arange(60), USER_ITEMS, N=3)
            assert (ids // 10 == np.arange(60)[:, None] // 20).mean() > 0.8

    def test_recommends_what_is_new(self, model: RecommenderBaseline) -> None:
        users = np.array([3, 50])
        ids, scores = model.recommend(users, USER_ITEMS[users], N=5)
        assert not np.take_along_axis(USER_ITEMS[users].toarray(), ids, axis=1).any()
        assert_allclose(scores, np.take_along_axis(every_score(model)[users], ids, axis=1), rtol=1e-4, atol=1e-5)
        assert (np.diff(scores, axis=1) <= 0).all()

    def test_numbers(self, model: RecommenderBaseline) -> None:
        kept = 0
        for name, value in vars(model).items():
            if isinstance(value, np.ndarray):
                assert value.dtype == np.float32, name
                kept += value.size
            elif isinstance(value, csr_array):
                assert value.dtype == np.float32, name
                kept += value.shape[0] + 2 * value.nnz
        assert model.numbers_per_item == pytest.approx(kept / 90)

    def test_same_seed_same_bits(self, model: RecommenderBaseline, unfitted: RecommenderBaseline) -> None:
        assert every_score(clone(unfitted).fit(USER_ITEMS)).tobytes() == every_score(model).tobytes()

    def test_any_number_of_threads_gives_the_same(
        self, model: RecommenderBaseline, unfitted: RecommenderBaseline
    ) -> None:
        table = many(1500, 400)
        short = {"n_epochs": 1, "n_iterations": 2, "n_jobs": 1}
        short = {name: value for name, value in short.items() if name in unfitted.get_params()}
        before = torch.get_num_threads()
        learned = []
        for n_jobs in (1, 2, 3):
            # Threads of BLAS are set from outside: they are not to matter either.
            with threadpool_limits(n_jobs):
                threads = {"n_jobs": n_jobs} if "n_jobs" in short else {}
                fitted = clone(unfitted).set_params(**(short | threads)).fit(table)
            arrays = [value for _, value in sorted(vars(fitted).items()) if isinstance(value, np.ndarray)]
            arrays += [value.data for _, value in sorted(vars(fitted).items()) if isinstance(value, csr_array)]
            assert arrays
            learned.append([array.tobytes() for array in arrays])
        assert torch.get_num_threads() == before
        assert learned[0] == learned[1] == learned[2]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_a_failed_fit_leaves_the_old_model(
        self, error: type[BaseException], model: RecommenderBaseline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, state, fit = every_score(model), dict(vars(model)), type(model)._fit

        def fails(self: Any, user_items: csr_array) -> None:
            fit(self, user_items)
            raise error

        monkeypatch.setattr(type(model), "_fit", fails)
        with pytest.raises(error):
            model.fit(USER_ITEMS[:40, :20])
        assert vars(model).keys() == state.keys()
        assert all(vars(model)[name] is value for name, value in state.items())
        assert_array_equal(every_score(model), before)

    def test_no_global_random_numbers(self, unfitted: RecommenderBaseline) -> None:
        before = generators()
        clone(unfitted).fit(USER_ITEMS)
        assert generators() == before

    def test_every_form_of_input(self, model: RecommenderBaseline, unfitted: RecommenderBaseline) -> None:
        for form in (csr_matrix(USER_ITEMS), USER_ITEMS.tocsc(), USER_ITEMS.toarray() > 0):
            assert every_score(clone(unfitted).fit(form)).tobytes() == every_score(model).tobytes()

    def test_the_input_is_left_alone(self, unfitted: RecommenderBaseline) -> None:
        given = USER_ITEMS.copy()
        model = clone(unfitted).fit(given)
        assert_array_equal(given.toarray(), USER_ITEMS.toarray())
        before = every_score(model)
        given.data[:] = 9
        assert_array_equal(every_score(model), before)

    def test_pickle(self, model: RecommenderBaseline) -> None:
        assert every_score(pickle.loads(pickle.dumps(model))).tobytes() == every_score(model).tobytes()

    def test_users_and_items_of_whom_nothing_is_known(self, unfitted: RecommenderBaseline) -> None:
        table = np.zeros((61, 31))
        table[:60, :30] = USER_ITEMS.toarray()
        model = clone(unfitted).fit(table)
        assert np.isfinite(every_score(model)).all()
        assert model.recommend(60, table[60], N=5)[0].min() >= 0

    def test_tiny_tables(self, unfitted: RecommenderBaseline) -> None:
        model = clone(unfitted)
        small = {"n_factors": 2 if isinstance(model, BPR) else 1, "n_components": 1}
        model.set_params(**{name: value for name, value in small.items() if name in model.get_params()})
        model.fit([[1, 0], [1, 1]])
        assert np.isfinite(every_score(model)).all()
        if not isinstance(model, SVD):
            assert np.isfinite(every_score(model.fit([[1]]))).all()

    def test_bad_input(self, unfitted: RecommenderBaseline) -> None:
        for table, message in (
            ([[1.0, np.nan]], "must be finite"),
            ([[1.0, -1.0]], "not negative"),
            ([[0, 0]], "no interaction"),
            ([1, 2], "two axes"),
        ):
            with pytest.raises(ValueError, match=message):
                clone(unfitted).fit(table)
        if "n_jobs" in unfitted.get_params():
            with pytest.raises(ValueError, match="n_jobs must not be 0"):
                clone(unfitted).set_params(n_jobs=0).fit(USER_ITEMS)
        for name, value in unfitted.get_params().items():
            if name not in ("random_state", "n_jobs", "verbose", "weight") and value is not None:
                with pytest.raises((ValueError, TypeError), match=name):
                    clone(unfitted).set_params(**{name: -1}).fit(USER_ITEMS)


@pytest.mark.parametrize("unfitted", [ALS(), BPR()], ids=lambda model: type(model).__name__)
def test_without_implicit(unfitted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "implicit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "implicit", None)
    with pytest.raises(ImportError, match=r"(ALS|BPR) needs implicit; pip install 'prodige\[recommend\]'"):
        unfitted.fit(USER_ITEMS)


def test_implicit_is_not_told_about_threads_of_blas() -> None:
    """It would warn, and warnings are errors here; but only once, so that is made to be forgotten."""
    utils = pytest.importorskip("implicit.utils")
    utils._checked_blas_config = False
    ALS(2, n_iterations=1).fit(USER_ITEMS)
