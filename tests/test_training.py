"""The training loop: it learns, repeats, thins, stops when told to, and never loses a good state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from prodige import GraphEmbedding
from prodige.sparsity import Budget, Importance
from prodige.training import State, constant, fit
from strategies import hub_graph, point_graph
from test_embedding import make

POINTS = point_graph(60, 5, 5)
WANTED = torch.from_numpy(
    np.linalg.norm(
        np.random.default_rng(1).normal(size=(60, 1, 3)) - np.random.default_rng(1).normal(size=(60, 3)), axis=2
    )
)


def squared(model: Any, sources: torch.Tensor) -> torch.Tensor:
    loss: torch.Tensor = (model(sources) - WANTED[sources].to(model.theta_w.dtype)).square().mean(1)
    return loss


@pytest.mark.parametrize("estimator", ["toggle", "score", "path"])
def test_learns_with_every_estimator(estimator: str) -> None:
    embedding = make(POINTS, probability=0.9, estimator=estimator)
    before = squared(embedding.eval(), torch.arange(60)).mean().item()
    result = fit(embedding, squared, n_steps=150, learning_rate=0.05, lambda_=1e-3, random_state=0)
    after = squared(embedding, torch.arange(60)).mean().item()
    assert after < before / 3
    assert not embedding.training
    assert result.stopped == "finished"
    assert [record["step"] for record in result.history_] == list(range(150))
    assert set(result.history_[0]) == {"step", "loss", "n_edges", "numbers_per_item", "learning_rate", "seconds"}


def test_sparse_adam() -> None:
    embedding = make(POINTS, probability=0.9, sparse=True)
    before = squared(embedding.eval(), torch.arange(60)).mean().item()
    fit(embedding, squared, 150, optimizer="sparse-adam", learning_rate=0.05, lambda_=1e-3, random_state=0)
    assert squared(embedding, torch.arange(60)).mean().item() < before / 3


def test_same_seed_same_bits_for_any_number_of_threads() -> None:
    results = []
    for n_jobs in (1, 2, 5):
        embedding = make(hub_graph(60, 4, 5), probability=0.8, dtype=torch.float32, n_jobs=n_jobs)
        embedding.importance = Importance()
        fit(embedding, squared, 40, learning_rate=0.05, budget=Budget(4), random_state=3)
        results.append(embedding.state_dict())
    for other in results[1:]:
        for name, value in results[0].items():
            assert torch.equal(value, other[name]), name
    embedding = make(hub_graph(60, 4, 5), probability=0.8, dtype=torch.float32)
    embedding.importance = Importance()
    fit(embedding, squared, 40, learning_rate=0.05, budget=Budget(4), random_state=4)
    assert not torch.equal(embedding.theta_w, results[0]["theta_w"])


def test_budget_is_met_and_importance_beats_chance() -> None:
    losses = {}
    for way in ("importance", "chance"):
        embedding = make(hub_graph(60, 4, 40))
        if way == "importance":
            embedding.importance = Importance(curvature=2 / (32 * 60))
        else:
            with torch.no_grad():
                embedding.theta_b.copy_(5 + torch.rand(embedding.n_edges, generator=torch.Generator().manual_seed(0)))
        result = fit(embedding, squared, 300, learning_rate=0.03, budget=Budget(4), random_state=0)
        assert embedding.n_edges == Budget(4).n_edges(60, 64)
        assert embedding.freeze().is_connected
        sizes = [record["n_edges"] for record in result.history_]
        assert sizes == sorted(sizes, reverse=True)
        losses[way] = squared(embedding.eval(), torch.arange(60)).mean().item()
    assert losses["importance"] < losses["chance"]


def test_callback_stops_the_run_with_the_best_result() -> None:
    seen: list[State] = []

    def stop(state: State) -> bool:
        seen.append(state)
        return state.step == 59

    embedding = make(hub_graph(60, 4, 40))
    embedding.importance = Importance(curvature=1e-3)
    result = fit(embedding, squared, 300, budget=Budget(4), callbacks=[stop], random_state=0)
    assert result.stopped == "callback"
    assert len(result.history_) == len(seen) == 60
    assert seen[-1].progress == pytest.approx(0.2)
    assert embedding.n_edges == Budget(4).n_edges(60, 64)  # not reached yet when it stopped


def test_interrupt_returns_what_there_is() -> None:
    def interrupt(state: State) -> None:
        if state.step == 30:
            raise KeyboardInterrupt

    embedding = make(POINTS)
    result = fit(embedding, squared, 100, learning_rate=0.05, callbacks=[interrupt], random_state=0)
    assert result.stopped == "interrupt"
    assert len(result.history_) == 31
    assert squared(embedding.eval(), torch.arange(60)).mean().item() < result.history_[0]["loss"]


def test_best_state_is_kept() -> None:
    """A run that gets worse ends where it was best."""
    embedding = make(POINTS)
    calls = iter(range(1000))

    def worse_and_worse(model: GraphEmbedding, sources: torch.Tensor) -> torch.Tensor:
        sign = 1 if next(calls) < 60 else -1
        return sign * squared(model, sources)

    def positive(model: GraphEmbedding, sources: torch.Tensor) -> torch.Tensor:
        loss = worse_and_worse(model, sources)
        return loss if loss.mean() > 0 else loss + 2 * squared(model, sources).detach()

    result = fit(embedding, positive, 120, learning_rate=0.05, schedule=constant, random_state=0)
    final = squared(embedding.eval(), torch.arange(60)).mean().item()
    assert final == pytest.approx(result.best_loss, rel=0.3)
    assert final < result.history_[-1]["loss"] * 0.8


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_meaningless_numbers_stop_the_run(where: str) -> None:
    embedding = make(POINTS)
    state: dict[str, torch.Tensor] = {}
    steps = iter(range(100))

    def loss(model: GraphEmbedding, sources: torch.Tensor) -> torch.Tensor:
        state.update({name: value.clone() for name, value in model.state_dict().items()})
        value = squared(model, sources)
        if next(steps) == 7:
            # sqrt has an infinite slope at 0
            return value * torch.nan if where == "loss" else (value * 0).sqrt()
        return value

    with pytest.raises(FloatingPointError, match=f"{where}.* at step 7"):
        fit(embedding, loss, 20, random_state=0)
    for name, value in embedding.state_dict().items():
        assert torch.equal(value, state[name])


def test_any_model_that_owns_an_embedding() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = make(POINTS)
            self.scale = torch.nn.Parameter(torch.tensor(0.1, dtype=torch.float64))

        def forward(self, sources: torch.Tensor) -> torch.Tensor:
            distances: torch.Tensor = self.scale * self.graph(sources)
            return distances

    model = Scaled()
    result = fit(
        model,
        lambda m, s: (m(s) - WANTED[s]).square().mean(),
        n_steps=100,
        learning_rate=0.05,
        random_state=0,
        sources=range(30),
    )
    assert model.scale.item() > 0.2  # learned along
    assert result.history_[-1]["loss"] < result.history_[0]["loss"] / 3


def test_progress_bar_shows_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    fit(make(POINTS), squared, 5, random_state=0, verbose=1)
    shown = capsys.readouterr().err
    assert "5/5" in shown
    for word in ("loss=", "edges=", "numbers="):
        assert word in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": torch.nn.Linear(1, 1)}, "exactly one GraphEmbedding, Linear has 0"),
        ({"optimizer": "sgd"}, "optimizer must be"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"n_steps": 0}, "n_steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"budget": Budget(2)}, "give at least"),
        ({"loss": lambda m, s: m(s)}, r"got shape \(32, 60\)"),
        ({"model": make(POINTS, estimator="score"), "loss": lambda m, s: m(s).mean()}, "loss of each source"),
    ],
)
def test_bad_calls(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"model": make(POINTS), "loss": squared, "n_steps": 5}
    with pytest.raises(ValueError, match=message):
        fit(**(arguments | options))
