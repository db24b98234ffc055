"""Ratios by hand, gradients by finite differences, regression against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.linear_model import LogisticRegression

from corpora import make_problem, sparse
from prodige.text.ratios import (
    GAIN,
    ROUGH_GAIN,
    Linear,
    Penalty,
    find_shift,
    find_temperature,
    log_count_ratios,
    loss_and_slopes,
    regress,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ratios(n_classes: int) -> None:
    dense, classes = RNG.random((30, 5)) < 0.4, RNG.integers(0, n_classes, 30)
    weights = RNG.random(30)
    found = log_count_ratios(sparse(dense), classes, n_classes, weights, 1)
    for column, label in enumerate(range(n_classes) if n_classes > 2 else [1]):
        inside = (weights * (classes == label)) @ dense + 1
        outside = (weights * (classes != label)) @ dense + 1
        ratios = np.log(inside / inside.sum() / (outside / outside.sum()))
        is_said = (inside > 1) | (n_classes == 2)
        np.testing.assert_allclose(found[is_said, column], ratios[is_said])


def test_classes_that_a_feature_should_have_been_seen_in() -> None:
    """The first feature is in all texts of class 0 only, the second in one of them."""
    classes = np.repeat([0, 1, 2], 20)
    dense = np.zeros((60, 2), dtype=bool)
    dense[:20, 0] = dense[0, 1] = True
    found = log_count_ratios(sparse(dense), classes, 3, np.ones(60), 1)
    assert (found[0] != 0).all()  # a third of its 20 texts should be of each class
    assert (found[1] != 0).tolist() == [True, False, False]


@pytest.mark.parametrize("n_scores", [1, 3])
def test_slopes(n_scores: int) -> None:
    scores, classes = RNG.normal(size=(6, n_scores)), RNG.integers(0, max(2, n_scores), 6)
    weights = RNG.random(6)
    _, slopes = loss_and_slopes(scores, classes, weights)
    numeric = approx_fprime(
        scores.ravel(), lambda point: loss_and_slopes(point.reshape(scores.shape), classes, weights)[0], 1e-7
    )
    np.testing.assert_allclose(slopes.ravel(), numeric, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_regression(n_classes: int) -> None:
    dense, classes = RNG.random((200, 6)) < 0.4, RNG.integers(0, n_classes, 200)
    features, n = sparse(dense), 1 if n_classes == 2 else n_classes
    start = Linear(np.zeros((6, n)), np.zeros(n))
    found = regress(features, classes, np.ones(200), np.ones((6, n)), Penalty(0.01), start, 1, lambda: False)
    X = dense / np.sqrt(np.maximum(dense.sum(axis=1, keepdims=True), 1))
    truth = LogisticRegression(C=1 / (0.01 * 200), tol=1e-8).fit(X, classes)
    np.testing.assert_allclose(found.weights.T, truth.coef_, atol=0.02)
    scores = found.scores(features)
    logits = np.concatenate([np.zeros((200, 1)), scores], axis=1) if n == 1 else scores
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, truth.predict_proba(X), atol=0.003)


def test_dropout() -> None:
    """Its penalty is what leaving features out at random varies scores by."""
    dense, classes = RNG.random((200, 3)) < [0.9, 0.5, 0.1], RNG.integers(0, 2, 200)
    features, scale, start = sparse(dense), RNG.random((3, 1)) + 0.5, Linear(np.zeros((3, 1)), np.zeros(1))
    penalty = Penalty(1e-3, 0.05)
    found = regress(features, classes, np.ones(200), scale, penalty, start, 1, lambda: False, 1e-9)

    def objective(point: np.ndarray) -> float:
        linear = Linear(point[:3, None], point[3:])
        loss, _ = loss_and_slopes(linear.scores(features), classes, np.ones(200))
        rng = np.random.default_rng(0)  # of scores when a tenth of the features is left out, but for their lengths
        ridge = np.sum((point[:3] / scale[:, 0]) ** 2) * penalty.ridge / 2
        kept = rng.random((400, *dense.shape)) < 0.9
        varied = ((dense * kept / 0.9) @ point[:3]).var(axis=0).mean()
        return float(loss + ridge + penalty.dropout / 2 * varied * 9)

    truth = minimize(objective, np.zeros(4)).x
    np.testing.assert_allclose(np.append(found.weights, found.bias), truth, atol=0.02)


def test_what_is_scaled_by_nothing_stays_nothing() -> None:
    dense, classes = RNG.random((50, 3)) < 0.5, RNG.integers(0, 2, 50)
    scale = np.array([[1.0], [0.0], [1.0]])
    start = Linear(np.zeros((3, 1)), np.zeros(1))
    found = regress(sparse(dense), classes, np.ones(50), scale, Penalty(1e-3), start, 1, lambda: False)
    assert (found.weights.ravel() != 0).tolist() == [True, False, True]


def test_a_descent_can_be_ended() -> None:
    dense, classes = RNG.random((50, 3)) < 0.5, RNG.integers(0, 2, 50)
    start = Linear(np.zeros((3, 1)), np.zeros(1))
    ended = regress(sparse(dense), classes, np.ones(50), np.ones((3, 1)), Penalty(1e-6), start, 1, lambda: True)
    whole = regress(sparse(dense), classes, np.ones(50), np.ones((3, 1)), Penalty(1e-6), start, 1, lambda: False)
    assert np.abs(ended.weights).max() < np.abs(whole.weights).max()


def test_temperature() -> None:
    """Scores that are three times too sure are divided by three; texts that are all right make no certainty."""
    truth = RNG.normal(size=(20_000, 1)) * 2
    classes = (RNG.random(20_000) < 1 / (1 + np.exp(-truth[:, 0]))).astype(np.int64)
    assert find_temperature(3 * truth, classes, np.ones(20_000)) == pytest.approx(1 / 3, rel=0.05)
    sure = find_temperature(np.array([[4.0], [-4.0]] * 5), np.array([1, 0] * 5), np.ones(10))
    assert 1 / (1 + np.exp(-4 * sure)) < 0.97


def test_shift() -> None:
    scores = RNG.normal(size=(5000, 3))
    shifted = scores + np.array([0.5, 0.0, -1.0])
    chances = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    classes = (RNG.random((5000, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    found = find_shift(scores, classes, np.ones(5000))
    np.testing.assert_allclose(found - found[1], [0.5, 0, -1], atol=0.15)


def test_a_rough_descent_takes_fewer_steps_to_nearly_the_same_loss() -> None:
    problem, _ = make_problem(2, 700)
    features, classes, weights = problem.candidates.features, problem.classes, problem.weights
    scale = log_count_ratios(features, classes, 2, weights, 1)
    start = Linear(np.zeros(scale.shape), np.zeros(1))
    steps, losses = [], []
    for gain in (GAIN, ROUGH_GAIN):
        asked: list[None] = []
        ask = asked.append
        found = regress(features, classes, weights, scale, Penalty(1e-3), start, 1, lambda ask=ask: ask(None), gain)  # type: ignore[misc]
        free = found.weights / np.where(scale == 0, 1, scale)
        loss, _ = loss_and_slopes(found.scores(features), classes, weights)
        steps.append(len(asked))
        losses.append(loss + 0.5e-3 * float((free**2).sum()))
    assert steps[1] < steps[0]
    assert losses[0] < losses[1] < 1.01 * losses[0]
