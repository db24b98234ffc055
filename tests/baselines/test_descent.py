"""The loop that moves vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from prodige.baselines import MDS
from prodige.baselines.descent import check_rate, descend, squared_distances
from prodige.metric.space import Space
from prodige.progress import Record


def run(distances: Any, n_steps: int = 50, **changes: Any) -> list[Record]:
    factor = torch.nn.Parameter(torch.tensor(1.0))
    options: dict[str, Any] = {"unit": 2.0, "batch_size": 2, "random": np.random.RandomState(0), "began": 0.0}
    return descend(
        Space([[0.0], [1.0], [3.0]]),
        lambda sources: distances(sources) * factor,
        torch.optim.Adam([factor], lr=0.1),
        n_steps=n_steps,
        **options | changes,
    )


def test_loss_is_in_units_of_the_data_and_the_rate_falls() -> None:
    history = run(lambda sources: torch.zeros(len(sources), 3), n_steps=4, batch_size=3)
    # All pairs, an item and itself among them: the squares of 1, 2 and 3, twice each, over nine.
    assert [record.loss for record in history] == pytest.approx([28 / 9] * 4)
    assert [record.step for record in history] == [0, 1, 2, 3]
    assert [record.learning_rate for record in history] == pytest.approx([0.1, 0.0854, 0.05, 0.0146], abs=1e-4)
    seconds = [record.seconds for record in history]
    assert seconds == sorted(seconds)


def test_one_factor_is_learned() -> None:
    space = Space([[0.0], [1.0], [3.0]])
    history = run(lambda sources: torch.from_numpy(space.distances(sources)), n_steps=200, batch_size=3)
    assert history[0].loss > 1
    assert history[-1].loss < 1e-6  # the factor is 1 / unit


def test_nonsense_stops_the_run() -> None:
    with pytest.raises(FloatingPointError, match="loss is nan at step 0"):
        run(lambda sources: torch.full((len(sources), 3), torch.nan))
    with pytest.raises(ValueError, match="n_steps must be between 1"):
        run(None, n_steps=0)
    with pytest.raises(ValueError, match="batch_size must be between 1"):
        run(None, batch_size=0)
    for rate in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="learning_rate must be a finite number above 0"):
            check_rate(rate)


def test_progress_bar_only_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    points = np.random.default_rng(0).normal(size=(10, 2))
    MDS(1, n_steps=2, random_state=0).fit(points)
    assert capfd.readouterr().err == ""
    MDS(1, n_steps=2, random_state=0, verbose=1).fit(points)
    assert "2/2" in capfd.readouterr().err


def test_squared_distances() -> None:
    points = np.random.default_rng(0).normal(size=(20, 4))
    squares = cdist(points, points, "sqeuclidean")
    tensor = torch.from_numpy(points)
    sources, targets = torch.tensor([3, 1]), torch.tensor([0, 1, 9])
    np.testing.assert_allclose(squared_distances(tensor, sources), squares[[3, 1]], atol=1e-12)
    np.testing.assert_allclose(
        squared_distances(tensor, sources, targets), squares[np.ix_([3, 1], [0, 1, 9])], atol=1e-12
    )
