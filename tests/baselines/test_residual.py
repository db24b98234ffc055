"""Principal coordinates and a residual energy, in numbers and in bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from prodige.baselines import PCA, ResidualCoordinates, Star
from prodige.baselines.residual import energies
from prodige.metric.space import Space

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(300, 40)) * np.geomspace(3, 0.5, 40)


def least_squares(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the energies whose sums are closest to what is left of squared distances, by a solver."""
    i, j = np.triu_indices(len(squares), 1)
    design = np.zeros((i.size, len(squares)))
    design[np.arange(i.size), i] = design[np.arange(i.size), j] = 1
    return np.asarray(np.linalg.lstsq(design, squares[i, j], rcond=None)[0])


@settings(max_examples=20)
@given(st.integers(3, 15), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_energies_match_least_squares(n: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, target = rng.normal(size=(n, width)), squareform(rng.uniform(0, 1, n * (n - 1) // 2)) ** 2
    left = target - squareform(pdist(points)) ** 2
    np.testing.assert_allclose(energies(points, target.sum(axis=1)), least_squares(left), atol=1e-9)


def test_matches_its_formula() -> None:
    few = POINTS[:80]
    model = ResidualCoordinates(5).fit(few)
    projected = sklearn.decomposition.PCA(4, svd_solver="full").fit_transform(few)
    kept, true = squareform(pdist(projected)) ** 2, squareform(pdist(few)) ** 2
    energy = least_squares(true - kept)
    np.testing.assert_allclose(model.energy_, energy, rtol=1e-4)
    expected = np.sqrt(kept + energy[:, None] + energy)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.distances(np.arange(80)), expected, rtol=1e-4)
    assert model.bits_ == [32] * 5
    assert model.bits_per_item_ == 160


def test_of_many_items_the_energy_is_what_coordinates_leave_out() -> None:
    projected = sklearn.decomposition.PCA(4, svd_solver="full").fit_transform(POINTS)
    rest = ((POINTS - POINTS.mean(axis=0)) ** 2).sum(axis=1) - (projected**2).sum(axis=1)
    np.testing.assert_allclose(ResidualCoordinates(5).fit(POINTS).energy_, rest, rtol=0.05)


def test_points_of_few_dimensions_are_found_again() -> None:
    flat = RNG.normal(size=(80, 2)) @ RNG.normal(size=(2, 10)) + 100
    assert -ResidualCoordinates(3).fit(flat).score(flat) < 1e-6
    matrix = squareform(pdist(flat))
    assert -ResidualCoordinates(3, "precomputed").fit(matrix).score(matrix) < 1e-6
    # A matrix has what rows have.
    rows, other = ResidualCoordinates(4).fit(POINTS), ResidualCoordinates(4, "precomputed")
    given_ = squareform(pdist(POINTS))
    assert other.fit(given_).score(given_) == pytest.approx(rows.score(POINTS), rel=1e-3)


def test_one_number_is_a_star_of_squares() -> None:
    squared = squareform(pdist(POINTS)) ** 2
    star = Star("precomputed").fit(squared)
    model = ResidualCoordinates(1).fit(POINTS)
    np.testing.assert_allclose(model.energy_, star.radius_, rtol=1e-4)
    assert model.embedding_.shape == (300, 0)


def test_far_ahead_of_pca() -> None:
    for k in (2, 4, 8):
        assert ResidualCoordinates(k).fit(POINTS).score(POINTS) > 0.1 * PCA(k).fit(POINTS).score(POINTS)


def test_few_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prodige.baselines.residual.N_LANDMARKS", 60)
    models = [ResidualCoordinates(4, "manhattan", random_state=seed).fit(POINTS) for seed in (0, 0, 1)]
    scores = [model.score(POINTS) for model in models]
    assert scores[0] == scores[1] != scores[2]
    assert scores[2] == pytest.approx(scores[0], rel=0.3)
    assert scores[0] > Star("manhattan").fit(POINTS).score(POINTS)


def test_sparse_rows_and_stretched_ones() -> None:
    sparse = scipy.sparse.csr_matrix(POINTS)
    assert ResidualCoordinates(4).fit(sparse).score(sparse) == pytest.approx(
        ResidualCoordinates(4).fit(POINTS).score(POINTS), rel=1e-2
    )
    stretched = POINTS / POINTS.std(axis=0, ddof=1)
    np.testing.assert_allclose(
        ResidualCoordinates(4, "seuclidean").fit(POINTS).distances([0]),
        ResidualCoordinates(4).fit(stretched).distances([0]),
        rtol=1e-4,
    )


def test_very_long_distances() -> None:
    long = ResidualCoordinates(4).fit(POINTS * 1e25).distances([0])
    np.testing.assert_allclose(long / 1e25, ResidualCoordinates(4).fit(POINTS).distances([0]), rtol=1e-4)


# -- bits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [8, 16.5, 40, 100])
def test_a_budget_is_kept(budget: float) -> None:
    model = ResidualCoordinates(bits_per_item=budget, random_state=0).fit(POINTS)
    assert budget - 2.5 < model.bits_per_item_ <= budget
    assert model.numbers_per_item == len(model.bits_) == model.embedding_.shape[1] + 1
    # No more levels than there are bits for, and tables are counted: bytes, and a range of two floats.
    columns = [*model.embedding_.T, model.energy_]
    assert all(np.unique(column).size <= 2**bits for column, bits in zip(columns, model.bits_, strict=True))
    tables = sum(64 + (8 * 2**bits if bits < 8 else 0) for bits in model.bits_)
    assert model.bits_per_item_ == pytest.approx(sum(model.bits_) + tables / 300)


def test_more_bits_are_better_up_to_all_numbers() -> None:
    scores = [ResidualCoordinates(bits_per_item=bits).fit(POINTS).score(POINTS) for bits in (8, 16, 32, 64, 128)]
    assert scores == sorted(scores)
    assert scores[-1] > 0.2 * scores[0]
    few = POINTS[:, :2]
    assert -ResidualCoordinates(bits_per_item=64).fit(few).score(few) < 1e-3 * few.var()


def test_energies_make_up_for_rounding() -> None:
    """They are those of the rounded coordinates: closer than what the coordinates have lost, item by item."""
    model = ResidualCoordinates(bits_per_item=30).fit(POINTS)
    centred = POINTS - POINTS.mean(axis=0)
    basis = np.linalg.lstsq(centred, model.embedding_, rcond=None)[0]
    lost = (centred**2).sum(axis=1) - 2 * ((centred @ basis) * model.embedding_).sum(axis=1)
    lost += (model.embedding_**2).sum(axis=1)
    true = Space(POINTS).distances(np.arange(300))
    square = squareform(pdist(model.embedding_)) ** 2 + lost[:, None] + lost
    naive = np.mean((np.sqrt(np.maximum(square, 0)) - true)[~np.eye(300, dtype=bool)] ** 2)
    assert -model.score(POINTS) < 0.9 * naive


def test_a_metric_without_rows() -> None:
    matrix = squareform(pdist(POINTS, "cityblock"))
    model = ResidualCoordinates(metric="precomputed", bits_per_item=48, random_state=0).fit(matrix)
    assert model.bits_per_item_ <= 48
    assert model.score(matrix) > 0.5 * Star("precomputed").fit(matrix).score(matrix)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"n_components must be between 1 and 41 for 300 items of 40 columns, got 42"):
        ResidualCoordinates(42).fit(POINTS)
    with pytest.raises(ValueError, match="n_components must be between 1"):
        ResidualCoordinates(0).fit(POINTS)
    with pytest.raises(ValueError, match=r"bits_per_item must be 3.427 or more for 300 items, got 3"):
        ResidualCoordinates(bits_per_item=3).fit(POINTS)
    with pytest.raises(ValueError, match="bits_per_item must be"):
        ResidualCoordinates(bits_per_item=float("nan")).fit(POINTS)
