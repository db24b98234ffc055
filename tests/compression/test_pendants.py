"""Pendants: hung items keep distances, each by itself, and landmarks learn places that suit all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from prodige.compression.coordinates import find_coordinates
from prodige.compression.near_places import Beside
from prodige.compression.pendants import Anchors, PendantFit, mean_distances
from prodige.metric.landmarks import Landmarks
from prodige.metric.space import Space

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(700, 30)) * 0.9 ** np.arange(30)).astype(np.float32)


def fit_of(n_jobs: int = 1, n_landmarks: int = 4096) -> PendantFit:
    landmarks = Landmarks.draw(Space(X), n_landmarks, np.random.RandomState(0))
    return PendantFit(landmarks, find_coordinates(landmarks, (2.0, 2.0)), n_jobs)


def error_of(fit: PendantFit, places: torch.Tensor, lengths: torch.Tensor) -> float:
    """Half the mean squared error of the distances between landmarks, in plain double precision."""
    found = cdist(places.double().numpy(), places.double().numpy()) + np.add.outer(*[lengths.double().numpy()] * 2)
    residuals = found - fit.among.numpy()
    np.fill_diagonal(residuals, 0)
    return float(np.square(residuals).mean()) / 2


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_items_of_exact_distances_are_found(seed: int, width: int) -> None:
    random = np.random.default_rng(seed)
    anchors = Anchors(random.normal(size=(60, width)).astype(np.float32), random.uniform(0, 1, 60).astype(np.float32))
    places, lengths = random.normal(size=(9, width)), random.uniform(0, 1, 9)
    target = (cdist(places, anchors.places) + lengths[:, None] + anchors.lengths).astype(np.float32)
    start = places + random.normal(scale=0.2, size=places.shape)
    found, found_lengths = anchors.hang(target, start.astype(np.float32), n_rounds=30)
    wrong = cdist(found, anchors.places) + found_lengths[:, None] + anchors.lengths - target
    before = cdist(start, anchors.places) + lengths[:, None] + anchors.lengths - target
    assert np.square(wrong).mean() < 0.02 * np.square(before).mean()


def test_items_are_hung_each_by_itself() -> None:
    anchors = Anchors(X[:100, :5].copy(), np.full(100, 0.3, np.float32))
    target, start = cdist(X[100:230], X[:100]).astype(np.float32), X[100:230, :5].copy()
    places, lengths = anchors.hang(target, start)
    for some in (slice(0, 1), slice(17, 90)):
        alone = anchors.hang(np.ascontiguousarray(target[some]), start[some])
        assert np.array_equal(places[some], alone[0])
        assert np.array_equal(lengths[some], alone[1])


def test_near_items_count_beside_anchors() -> None:
    """Items end where the weighted error of both is least, each by itself; near items of share 0 change nothing."""
    anchors = Anchors(X[:100, :5].copy(), np.full(100, 0.3, np.float32))
    target, start = cdist(X[100:130], X[:100]).astype(np.float32), X[100:130, :5].copy()
    near = np.argsort(cdist(X[100:130], X[200:]), axis=1)[:, :6]
    distances = np.take_along_axis(cdist(X[100:130], X[200:]), near, axis=1).astype(np.float32)
    places, lengths = X[200:, :5][near], np.full(near.shape, 0.2, np.float32)

    def beside(share: float, rows: slice = slice(None)) -> Beside:
        return Beside(places[rows], lengths[rows], distances[rows], np.full(near[rows].shape, share, np.float32))

    def error(found: tuple[np.ndarray, np.ndarray], share: float) -> float:
        far = cdist(found[0], anchors.places) + found[1][:, None] + anchors.lengths - target
        flat = np.linalg.norm(found[0][:, None] - places, axis=2)
        wrong = flat + found[1][:, None] + lengths - distances
        return float(np.square(far).sum() + share * np.square(wrong).sum())

    without, found = anchors.hang(target, start, 20), anchors.hang(target, start, 20, beside(10.0))
    assert np.array_equal(anchors.hang(target, start, 20, beside(0.0))[0], without[0])
    assert error(found, 10.0) < 0.8 * error(without, 10.0)
    random = np.random.default_rng(0)
    for _ in range(20):
        other = found[0] + random.normal(scale=0.1, size=start.shape), found[1]
        assert error(found, 10.0) < error(other, 10.0)
    alone = anchors.hang(target[7:9], start[7:9], 20, beside(10.0, slice(7, 9)))
    np.testing.assert_array_equal(alone[0], found[0][7:9])
    np.testing.assert_array_equal(alone[1], found[1][7:9])


def test_lengths_beside_near_items() -> None:
    beside = Beside(*(np.full((1, 2, *more), value, np.float32) for value, *more in ((0.0, 3), (0.2,), (1.0,), (5.0,))))
    # An anchor asks for .1 and counts 1; two near items ask for 1 - .3 - .2 and count 5 each.
    found = beside.suit_length(np.full((1, 2), 0.3, np.float32), np.array([0.1], np.float32), 1)
    assert found[0] == pytest.approx((0.1 + 10 * 0.5) / 11)
    assert beside.suit_length(np.full((1, 2), 9.0, np.float32), np.array([0.1], np.float32), 1)[0] == 0


def test_slopes_are_those_of_finite_differences() -> None:
    fit = fit_of()
    fit.begin(4)
    slopes = torch.cat([fit._pull(number).slopes for number in range(len(fit._rows))]).double()
    along = torch.from_numpy(RNG.normal(size=slopes.shape))
    step = 1e-4
    ends = [
        error_of(fit, fit.places + sign * step * along[:, :-1], fit.lengths + sign * step * along[:, -1])
        for sign in (1, -1)
    ]
    # The slopes are by the row of a pair alone, and every pair has two.
    expected = 2 * float((slopes * along).sum()) / len(slopes)
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n_directions", [1, 5, 20])
def test_steps_lower_the_error_and_no_length_is_below_zero(n_directions: int) -> None:
    fit = fit_of()
    before = fit.begin(n_directions)
    fit.learn()
    after = 2 * error_of(fit, fit.places, fit.lengths)
    assert after < before
    assert (fit.lengths >= 0).all()


@pytest.mark.repeatable
def test_the_same_bits_for_any_number_of_threads() -> None:
    one, two = fit_of(1), fit_of(3)
    for fit in (one, two):
        fit.begin(6)
        fit.learn()
    assert torch.equal(one.places, two.places)
    assert np.array_equal(one.hang().places, two.hang().places)


def test_items_that_are_no_landmarks_hang_as_well_as_those_that_are() -> None:
    fit = fit_of(n_landmarks=320)
    fit.begin(8)
    fit.learn()
    hung = fit.hang()
    lengths = hung.lengths_of(hung.places)
    found = cdist(hung.places, hung.places) + lengths[:, None] + lengths
    squares = np.square(found - cdist(X, X) / fit.landmarks.scale)
    np.fill_diagonal(squares, 0)
    others = np.setdiff1d(np.arange(len(X)), fit.ids)
    assert others.size > 300
    assert squares[np.ix_(others, others)].mean() < 1.4 * squares[np.ix_(fit.ids, fit.ids)].mean()
    np.testing.assert_allclose(hung.places[fit.ids].mean(axis=0), 0, atol=1e-4)
    assert (np.diff(hung.variances) < 1e-6 + 0.1 * hung.variances[1:]).all()


def test_means_leave_out_an_anchor_from_itself() -> None:
    anchors = np.array([3, 5, 8])
    found = mean_distances(X[:10], anchors, 1)
    expected = cdist(X[:10], X[anchors]).sum(axis=1) / np.where(np.isin(np.arange(10), anchors), 2, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_step_that_is_over_changes_nothing() -> None:
    fit = fit_of()
    fit.begin(3)
    before = fit.places.clone()
    assert np.isnan(fit.learn(is_over=lambda: True))
    assert torch.equal(fit.places, before)
