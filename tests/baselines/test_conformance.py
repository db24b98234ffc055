"""What every baseline must do, whatever it is made of."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from prodige.baselines import MDS, PCA, Baseline, Constant, PoincareMDS, ResidualCoordinates, Star, Vivaldi, base
from prodige.metric.space import Space

POINTS = np.random.default_rng(0).normal(size=(40, 6))
TRUE = Space(POINTS).distances(np.arange(40))
OTHERS = ~np.eye(40, dtype=bool)

BASELINES = [
    Constant(),
    Star(),
    PCA(3),
    MDS(3, n_steps=25, random_state=0),
    PoincareMDS(3, n_steps=25, random_state=0),
    ResidualCoordinates(3, random_state=0),
    Vivaldi(3, n_steps=25, random_state=0),
]


def every_distance(model: Baseline) -> NDArray[np.float32]:
    return model.distances(np.arange(model.n_items_))


def generators() -> tuple[bytes, bytes]:
    return pickle.dumps(np.random.get_state()), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002


def one_norm(x: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.abs(x - y).sum())


def interrupted(x: NDArray[Any], y: NDArray[Any]) -> float:
    raise KeyboardInterrupt


@pytest.mark.parametrize("unfitted", BASELINES, ids=lambda model: type(model).__name__)
class TestBaseline:
    @pytest.fixture
    def model(self, unfitted: Baseline) -> Baseline:
        return clone(unfitted).fit(POINTS)  # type: ignore[no-any-return]

    def test_parameters_are_only_stored(self, unfitted: Baseline) -> None:
        marks: dict[str, Any] = {name: object() for name in inspect.signature(type(unfitted)).parameters}
        assert type(unfitted)(**marks).get_params() == marks
        assert {"metric", "n_jobs"} <= marks.keys()
        with pytest.raises(NotFittedError):
            unfitted.distances([0])
        with pytest.raises(NotFittedError):
            next(unfitted.pairwise_distances())
        with pytest.raises(NotFittedError):
            unfitted.score(POINTS)

    def test_fit_returns_the_model(self, unfitted: Baseline) -> None:
        model = clone(unfitted)
        assert model.fit(POINTS) is model
        assert model.n_items_ == 40
        assert model.n_features_in_ == 6
        assert model.get_params() == unfitted.get_params()

    def test_distances(self, model: Baseline) -> None:
        every = every_distance(model)
        assert every.dtype == np.float32
        assert every.shape == (40, 40)
        assert np.isfinite(every).all()
        assert (every >= 0).all()
        assert (np.diagonal(every) == 0).all()
        np.testing.assert_allclose(every, every.T, atol=1e-5)
        some = model.distances([5, 2, 5], [2, 7])
        assert some.dtype == np.float32
        np.testing.assert_allclose(some, every[np.ix_([5, 2, 5], [2, 7])], atol=1e-5)
        assert some[1, 0] == 0
        assert model.distances(3).shape == (1, 40)
        assert model.distances([]).shape == (0, 40)

    def test_answers_belong_to_the_caller(self, model: Baseline) -> None:
        before = every_distance(model)
        model.distances([0])[:] = 7
        np.testing.assert_array_equal(every_distance(model), before)

    def test_blocks_are_all_distances(self, model: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(base, "_BLOCK", 40 * 7)
        parts = list(model.pairwise_distances())
        assert [sources.size for sources, _ in parts] == [7, 7, 7, 7, 7, 5]
        np.testing.assert_array_equal(np.concatenate([sources for sources, _ in parts]), np.arange(40))
        np.testing.assert_allclose(np.concatenate([block for _, block in parts]), every_distance(model), atol=1e-5)

    def test_score_is_the_negative_error_of_all_pairs(self, model: Baseline) -> None:
        error = np.mean((every_distance(model) - TRUE)[OTHERS].astype(np.float64) ** 2)
        assert model.score(POINTS) == pytest.approx(-error, rel=1e-6)
        with pytest.raises(ValueError, match="same 30 items"):
            model.score(POINTS[:30])

    def test_numbers(self, model: Baseline) -> None:
        arrays = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
        assert sum(array.size for array in arrays) == 40 * model.numbers_per_item
        assert all(array.dtype == np.float32 for array in arrays)
        scalars = [value for name, value in vars(model).items() if name.endswith("_") and isinstance(value, float)]
        assert len(scalars) == model.shared_numbers

    def test_same_seed_same_bits(self, model: Baseline, unfitted: Baseline) -> None:
        assert every_distance(clone(unfitted).fit(POINTS)).tobytes() == every_distance(model).tobytes()

    @pytest.mark.repeatable
    def test_any_number_of_threads_gives_the_same_bits(self, unfitted: Baseline) -> None:
        X = np.random.default_rng(1).normal(size=(1500, 6))
        before = torch.get_num_threads()
        first, *others = (every_distance(clone(unfitted).set_params(n_jobs=jobs).fit(X)) for jobs in (1, 2, 3))
        assert torch.get_num_threads() == before
        for other in others:
            assert other.tobytes() == first.tobytes()

    def test_a_refit_that_fails_leaves_everything(self, model: Baseline) -> None:
        before = dict(vars(model))
        with pytest.raises(ValueError, match="NaN"):
            model.fit([[1.0], [np.nan]])
        model.metric = interrupted
        with pytest.raises(KeyboardInterrupt):
            model.fit(POINTS[:20, :3])
        assert vars(model) == before | {"metric": interrupted}

    def test_distances_too_small_are_refused(self, unfitted: Baseline) -> None:
        with pytest.raises(ValueError, match="too small for single precision"):
            clone(unfitted).fit(1e-300 * POINTS)

    def test_no_global_random_numbers(self, unfitted: Baseline) -> None:
        before = generators()
        clone(unfitted).fit(POINTS)
        assert generators() == before

    def test_scales_with_the_data(self, model: Baseline, unfitted: Baseline) -> None:
        larger = clone(unfitted).fit(POINTS * 1000)
        assert larger.score(POINTS * 1000) == pytest.approx(1e6 * model.score(POINTS), rel=0.02)

    def test_pickle(self, model: Baseline) -> None:
        copy = pickle.loads(pickle.dumps(model))
        assert every_distance(copy).tobytes() == every_distance(model).tobytes()

    def test_two_items_and_duplicates(self, unfitted: Baseline) -> None:
        model = clone(unfitted)
        if "n_components" in model.get_params():
            model.set_params(n_components=1)
        assert model.fit([[0.0, 0.0], [3.0, 4.0]]).distances(0)[0, 1] == pytest.approx(5, rel=0.02)
        same = model.fit(np.ones((5, 2)))
        assert np.isfinite(every_distance(same)).all()
        assert every_distance(same).max() < 0.1

    def test_metrics(self, unfitted: Baseline) -> None:
        if isinstance(unfitted, PCA):
            return
        named = clone(unfitted).set_params(metric="manhattan").fit(POINTS)
        callable_ = clone(unfitted).set_params(metric=one_norm).fit(POINTS)
        matrix = Space(POINTS, "manhattan").distances(np.arange(40))
        given = clone(unfitted).set_params(metric="precomputed").fit(matrix)
        np.testing.assert_allclose(every_distance(named), every_distance(callable_), atol=1e-2)
        np.testing.assert_allclose(every_distance(named), every_distance(given), atol=1e-2)
        assert given.score(matrix) == pytest.approx(named.score(POINTS), rel=1e-2)

    def test_bad_input(self, model: Baseline, unfitted: Baseline) -> None:
        with pytest.raises(IndexError, match=r"sources\[1\] = 40 is not an item: .* items 0 to 39"):
            model.distances([0, 40])
        with pytest.raises(IndexError, match=r"targets\[0\] = -1"):
            model.distances([0], [-1])
        with pytest.raises(TypeError, match="sources must hold integers"):
            model.distances([0.5])
        with pytest.raises(ValueError, match="2 items or more, got 1"):
            clone(unfitted).fit([[1.0, 2.0]])
        with pytest.raises(ValueError, match="NaN"):
            clone(unfitted).fit([[1.0], [np.nan]])
        with pytest.raises(ValueError, match="n_jobs must not be 0"):
            clone(unfitted).set_params(n_jobs=0).fit(POINTS)


def test_components_help() -> None:
    for kind in (PCA, MDS, PoincareMDS, ResidualCoordinates, Vivaldi):
        steps: dict[str, Any] = {} if kind in (PCA, ResidualCoordinates) else {"n_steps": 150, "random_state": 0}
        few, many = (kind(k, **steps).fit(POINTS).score(POINTS) for k in (1, 4))
        assert few < many < 0
