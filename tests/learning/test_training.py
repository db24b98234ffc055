"""The training loop: it learns, repeats, thins, stops when told to, and never loses a good state."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any, Literal

import numpy as np
import pytest
import torch

from learning.test_embedding import make
from prodige import GraphEmbedding
from prodige.learning.sparsity import Budget, Importance
from prodige.learning.training import constant, fit
from prodige.progress import Callback, Record
from strategies import hub_graph, point_graph

POINTS = point_graph(60, 5, 5)
TARGET = torch.from_numpy(
    np.linalg.norm(
        np.random.default_rng(1).normal(size=(60, 1, 3)) - np.random.default_rng(1).normal(size=(60, 3)), axis=2
    )
)


def squared(model: Any, sources: torch.Tensor) -> torch.Tensor:
    loss: torch.Tensor = (model(sources) - TARGET[sources].to(model.theta_w.dtype)).square().mean(1)
    return loss


@pytest.mark.parametrize("estimator", ["toggle", "score", "path"])
def test_learns_with_every_estimator(estimator: str) -> None:
    embedding = make(POINTS, probability=0.9, estimator=estimator)
    before = squared(embedding.eval(), torch.arange(60)).mean().item()
    result = fit(embedding, squared, n_steps=150, learning_rate=0.05, lambda_=1e-3, random_state=0)
    after = squared(embedding, torch.arange(60)).mean().item()
    assert after < before / 3
    assert not embedding.training
    assert result.stopped_ == "finished"
    assert [record.step for record in result.history_] == list(range(150))
    assert set(result.history_[0].known()) == {
        "step",
        "progress",
        "loss",
        "n_edges",
        "numbers_per_item",
        "learning_rate",
        "seconds",
    }


def test_sparse_adam() -> None:
    embedding = make(POINTS, probability=0.9, sparse=True)
    before = squared(embedding.eval(), torch.arange(60)).mean().item()
    fit(embedding, squared, 150, optimizer="sparse-adam", learning_rate=0.05, lambda_=1e-3, random_state=0)
    assert squared(embedding, torch.arange(60)).mean().item() < before / 3


@pytest.mark.repeatable
@pytest.mark.parametrize("estimator", ["toggle", "score", "path"])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_estimator_has_the_same_bits_for_any_number_of_threads(estimator: str, sparse: bool) -> None:
    """On a graph so large that every batch is worth several threads."""
    edges = point_graph(1500, 8, 4)
    results = []
    for n_jobs in (1, 3):
        embedding = make(edges, probability=0.9, dtype=torch.float32, estimator=estimator, sparse=sparse, n_jobs=n_jobs)
        optimizer: Literal["adam", "sparse-adam"] = "sparse-adam" if sparse else "adam"
        result = fit(
            embedding, lambda m, s: (m(s) - 1).square().mean(1), 3, optimizer=optimizer, lambda_=0.01, random_state=3
        )
        assert embedding._prepare(None).engine.threads(n_jobs, 32) == n_jobs
        results.append((embedding.state_dict(), [record.loss for record in result.history_]))
    for state, losses in results[1:]:
        assert losses == results[0][1]
        for name, value in results[0][0].items():
            assert torch.equal(value, state[name]), name


@pytest.mark.repeatable
def test_same_seed_same_bits_for_any_number_of_threads() -> None:
    results = []
    for n_jobs in (1, 2, 3):
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
    for path in ("importance", "chance"):
        embedding = make(hub_graph(60, 4, 40))
        if path == "importance":
            embedding.importance = Importance(curvature=2 / (32 * 60))
        else:
            with torch.no_grad():
                embedding.theta_b.copy_(5 + torch.rand(embedding.n_edges, generator=torch.Generator().manual_seed(0)))
        result = fit(embedding, squared, 300, learning_rate=0.03, budget=Budget(4), random_state=0)
        assert embedding.n_edges == Budget(4).n_edges(60, 64)
        assert embedding.freeze().is_connected
        sizes = [record.n_edges or 0 for record in result.history_]
        assert sizes == sorted(sizes, reverse=True)
        losses[path] = squared(embedding.eval(), torch.arange(60)).mean().item()
    assert losses["importance"] < losses["chance"]


def test_callback_stops_the_run_with_the_best_result() -> None:
    seen: list[Record] = []

    def stop(record: Record) -> bool:
        seen.append(record)
        return record.step == 59

    embedding = make(hub_graph(60, 4, 40))
    embedding.importance = Importance(curvature=1e-3)
    result = fit(embedding, squared, 300, budget=Budget(4), callbacks=[stop], random_state=0)
    assert result.stopped_ == "callback"
    assert len(result.history_) == len(seen) == 60
    assert seen[-1].progress == pytest.approx(59 / 300)
    assert embedding.n_edges == Budget(4).n_edges(60, 64)  # not reached yet when it stopped


def test_interrupt_returns_what_there_is() -> None:
    def interrupt(record: Record) -> None:
        if record.step == 30:
            raise KeyboardInterrupt

    embedding = make(POINTS)
    result = fit(embedding, squared, 100, learning_rate=0.05, callbacks=[interrupt], random_state=0)
    assert result.stopped_ == "interrupt"
    assert len(result.history_) == 31
    assert squared(embedding.eval(), torch.arange(60)).mean().item() < result.history_[0].loss


def lending() -> tuple[GraphEmbedding, torch.optim.Optimizer, Budget]:
    embedding = make(hub_graph(60, 4, 5), probability=0.9, generator=torch.Generator().manual_seed(1))
    embedding.importance = Importance()
    optimizer = torch.optim.Adam(
        [{"params": [embedding.theta_w], "lr": 0.05}, {"params": [embedding.theta_b], "lr": 0.02}]
    )
    return embedding, optimizer, Budget(4)


def finish(record: Record) -> bool:
    return False


def stop(record: Record) -> bool:
    return record.step == 8


def interrupt(record: Record) -> None:
    if record.step == 8:
        raise KeyboardInterrupt


def fail(record: Record) -> None:
    if record.step == 8:
        raise OSError("disk full")


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("end", [finish, stop, interrupt, fail])
def test_all_that_was_lent_comes_back(end: Callback, training: bool) -> None:
    embedding, optimizer, budget = lending()
    frozen = torch.nn.BatchNorm1d(3)
    model = torch.nn.ModuleDict({"graph": embedding, "frozen": frozen}).train(training)
    frozen.train(not training)
    optimizer.add_param_group({"params": list(frozen.parameters()), "lr": 0.5})
    generator = embedding.generator

    def loss(model: Any, sources: torch.Tensor) -> torch.Tensor:
        return squared(model["graph"], sources)

    for _ in range(2):  # so all of it can be used again
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.7})
        rates = [group["lr"] for group in optimizer.param_groups]
        try:
            fit(model, loss, 30, optimizer=optimizer, budget=budget, callbacks=[end], random_state=0)
        except OSError:
            assert end is fail
        assert [group["lr"] for group in optimizer.param_groups] == rates
        assert embedding.generator is generator
        assert (model.training, embedding.training, frozen.training) == (training, training, not training)
        assert all(parameter.grad is None for parameter in model.parameters())
        for parameter in (embedding.theta_w, embedding.theta_b):
            assert optimizer.state[parameter]["exp_avg"].shape == parameter.shape == (embedding.n_edges,)
    assert embedding.importance is not None
    assert embedding.importance.values.shape == (embedding.n_edges,)


def test_an_optimiser_goes_on_after_pruning() -> None:
    """Also where nobody told it: between two runs, and by a callback in the midst of one."""
    embedding = make(POINTS, probability=np.where(np.arange(POINTS.i.size) % 7, 0.9, 0.3))
    optimizer = torch.optim.Adam(embedding.parameters(), lr=1e-3)
    fit(embedding, squared, 5, optimizer=optimizer, random_state=0)
    assert embedding.prune() > 0
    fit(embedding, squared, 5, optimizer=optimizer, random_state=0)

    def prune(record: Record) -> None:
        if record.step == 2:
            embedding.keep(np.arange(embedding.n_edges) % 5 > 0)

    n_edges = embedding.n_edges
    fit(embedding, squared, 30, optimizer=optimizer, callbacks=[prune], random_state=0)
    assert embedding.n_edges < n_edges
    for state in optimizer.state.values():
        assert state["exp_avg"].shape == (embedding.n_edges,)


def test_a_budget_can_be_used_again() -> None:
    """A second run thins by the size of its own graph, as a fresh budget would have it."""
    small, large = hub_graph(60, 4, 5), hub_graph(60, 8, 30)
    used = Budget(5)
    fit(make(small), squared, 30, budget=used, random_state=0)
    sizes = []
    for budget in (used, Budget(5)):
        result = fit(make(large), squared, 30, budget=budget, random_state=0)
        sizes.append([record.n_edges for record in result.history_])
    assert sizes[0] == sizes[1]
    assert len(set(sizes[0])) > 10
    by_hand = []
    for budget in (used, Budget(5)):
        embedding = make(large)
        for step in range(20):
            budget.step(embedding, step / 20)
            by_hand.append(embedding.n_edges)
    assert by_hand[:20] == by_hand[20:]


class Interrupting:
    """Raise KeyboardInterrupt at the n-th line that a training step runs in the files that change anything."""

    FILES = ("training.py", "sparsity.py", "embedding.py", "distances.py", "adam.py", "optimizer.py")

    def __init__(self, n_lines: int) -> None:
        self.left = n_lines
        self.place = ""
        self._in_step = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_name == "_step" and frame.f_code.co_filename.endswith("training.py"):
            self._in_step = event != "return"
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        if event == "line" and self._in_step:
            self.left -= 1
            if self.left == 0:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def interrupted_run(
    end: Callback | Interrupting,
) -> tuple[int, dict[str, torch.Tensor], dict[str, torch.Tensor], Any, str]:
    """Return completed steps, parameters, state of Adam, importance and why it stopped, of a run that is cut short."""
    embedding = make(hub_graph(12, 3, 5), probability=0.9)
    embedding.importance = Importance()
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.05, foreach=False)  # one parameter after the other

    def loss(model: Any, sources: torch.Tensor) -> torch.Tensor:
        losses: torch.Tensor = (model(sources) - TARGET[sources, :12]).square().mean(1)
        return losses

    budget = Budget(4, start=0.0, end=0.9)
    callbacks = [] if isinstance(end, Interrupting) else [end]
    tracing = sys.gettrace()
    if isinstance(end, Interrupting):
        sys.settrace(end)
    try:
        result = fit(
            embedding, loss, 5, batch_size=4, optimizer=optimizer, budget=budget, callbacks=callbacks, random_state=0
        )
    finally:
        sys.settrace(tracing)
    state = {f"{n}.{key}": value for n, s in enumerate(optimizer.state.values()) for key, value in s.items()}
    values = None if embedding.importance.is_empty else embedding.importance.values
    assert embedding.n_edges == embedding.theta_b.numel() == embedding.j.numel()
    return len(result.history_), embedding.state_dict(), state, values, result.stopped_


def test_an_interrupt_anywhere_in_a_step_undoes_that_step() -> None:
    """What is left is what a run has that was stopped after the step before."""

    def stopped_after(n_steps: int) -> Any:
        if n_steps == 0:
            first_line = Interrupting(1)
            return interrupted_run(first_line)
        return interrupted_run(lambda state: state.step + 1 == n_steps)

    expected = {n_steps: stopped_after(n_steps) for n_steps in range(4)}
    assert expected[0][1]["theta_w"].shape == (Budget(4).n_edges(12, 15),)
    places = set()
    n_lines = 1
    while True:
        end = Interrupting(n_lines)
        n_steps, parameters, state, importance, stopped = interrupted_run(end)
        if n_steps > 2:
            break
        assert stopped == "interrupt", end.place
        places.add(end.place.rsplit("/")[-1])
        _, old_parameters, old_state, old_importance, _ = expected[n_steps]
        for one, other in ((parameters, old_parameters), (state, old_state)):
            assert one.keys() == other.keys()
            for name, value in other.items():
                assert torch.equal(one[name], value), (end.place, name)
        np.testing.assert_array_equal(importance, old_importance)
        n_lines += 5
    assert {place.split(":")[0] for place in places} >= {"training.py", "sparsity.py", "embedding.py", "adam.py"}


def test_an_interrupt_in_the_first_step_leaves_a_graph_within_the_budget() -> None:
    def interrupt(model: Any, sources: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    embedding = make(hub_graph(60, 4, 5))
    embedding.importance = Importance()
    result = fit(embedding, interrupt, 100, budget=Budget(4), random_state=0)
    assert result.stopped_ == "interrupt"
    assert result.history_ == []
    assert embedding.n_edges == Budget(4).n_edges(60, 64)
    assert embedding.freeze().is_connected


def test_a_second_interrupt_waits_until_the_model_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    embedding = make(hub_graph(60, 4, 5))
    embedding.importance = Importance()
    keep = GraphEmbedding.keep

    def interrupted_keep(self: GraphEmbedding, *arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        keep(self, *arguments)

    monkeypatch.setattr(GraphEmbedding, "keep", interrupted_keep)
    with pytest.raises(KeyboardInterrupt):
        fit(embedding, squared, 50, budget=Budget(4), callbacks=[lambda state: state.step == 3], random_state=0)
    assert embedding.n_edges == Budget(4).n_edges(60, 64)
    assert embedding.training


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

    states: list[torch.Tensor] = []

    def note(record: Record) -> None:
        states.append(embedding.theta_w.detach().clone())

    result = fit(embedding, positive, 120, learning_rate=0.05, schedule=constant, callbacks=[note], random_state=0)
    smoothed = [result.history_[0].loss]
    for record in result.history_[1:]:
        smoothed.append(0.95 * smoothed[-1] + 0.05 * record.loss)
    best = min(range(19, 120, 20), key=lambda step: smoothed[step])
    assert 59 <= best < 119  # it went wrong from 60 on, and the mean follows
    assert result.best_loss_ == pytest.approx(smoothed[best])
    assert torch.equal(embedding.theta_w, states[best])
    assert squared(embedding.eval(), torch.arange(60)).mean().item() < result.history_[-1].loss * 0.8


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
        lambda m, s: (m(s) - TARGET[s]).square().mean(),
        n_steps=100,
        learning_rate=0.05,
        random_state=0,
        sources=range(30),
    )
    assert model.scale.item() > 0.2  # learned along
    assert result.history_[-1].loss < result.history_[0].loss / 3


def test_progress_bar_shows_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    fit(make(POINTS), squared, 5, random_state=0, verbose=1)
    shown = capsys.readouterr().err
    assert "5/5" in shown
    for word in ("loss=", "edges=", "numbers="):
        assert word in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": torch.nn.Linear(1, 1)}, "exactly one GraphEmbedding or ProductEmbedding, Linear has 0"),
        ({"optimizer": "sgd"}, "optimizer must be"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"n_steps": 0}, "n_steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"budget": Budget(2)}, "give at least"),
        ({"loss": lambda m, s: m(s)}, r"got shape \(32, 60\)"),
        ({"loss": lambda m, s: m(s)[:0].mean(1)}, r"got shape \(0,\)"),
        ({"loss": lambda m, s: m(s).detach().mean()}, "does not depend on any parameter"),
        ({"loss": lambda m, s: torch.tensor(1.0), "lambda_": 1.0}, "does not depend on any parameter"),
        ({"model": make(POINTS).requires_grad_(False)}, "does not depend on any parameter"),
        ({"sources": []}, "sources must hold at least one vertex"),
        ({"sources": [[0]]}, "sources must be one-dimensional"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number above 0, got nan"),
        ({"lambda_": float("nan")}, "lambda_ must be a finite number of 0 or more, got nan"),
        ({"lambda_": -1.0}, "lambda_ must be a finite number of 0 or more, got -1"),
        ({"schedule": lambda progress: float("nan")}, r"schedule\(0\) must be a finite number of 0 or more, got nan"),
        ({"baseline": "leave-one-out"}, "baseline must be 'running-mean' or 'none', got 'leave-one-out'"),
        ({"optimizer": "sparse-adam"}, r"does not go with GraphEmbedding\(sparse=False\)"),
        ({"model": make(POINTS, sparse=True)}, r"does not go with GraphEmbedding\(sparse=True\)"),
        (
            {"model": make(POINTS, estimator="score", probability=0.9), "loss": lambda m, s: m(s[:7]).mean(1)[:5]},
            r"losses must have one entry per source, shape \(32,\), got \(5,\)",
        ),
        ({"model": make(POINTS, estimator="score"), "loss": lambda m, s: m(s).mean()}, "loss of each source"),
    ],
)
def test_bad_calls(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"model": make(POINTS), "loss": squared, "n_steps": 5}
    with pytest.raises(ValueError, match=message):
        fit(**(arguments | options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": lambda m, s: None}, TypeError, "loss must return a tensor, .* got None .*return"),
        ({"loss": lambda m, s: 1.0}, TypeError, "loss must return a tensor, .* got 1.0 of type float"),
        ({"loss": lambda m, s: m(s).mean().long()}, TypeError, "loss must return real numbers, got dtype torch.int64"),
        ({"loss": None}, TypeError, "loss must be a function"),
        ({"model": None}, TypeError, "model must be a torch module"),
        ({"sources": [0, 60]}, IndexError, r"sources\[1\] = 60 is not a vertex: the graph has vertices 0 to 59"),
        ({"sources": [0.5]}, TypeError, "sources must hold integers"),
        ({"sources": 3}, TypeError, "sources must be a sequence of vertices, got 3"),
        ({"callbacks": print}, TypeError, "callbacks must be a sequence of functions"),
        ({"callbacks": [3]}, TypeError, "callbacks must be functions of a prodige.progress.Record, got 3"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number, got 'fast'"),
        ({"budget": 4}, TypeError, r"budget must be a .*Budget, got 4; write Budget\(4\)"),
    ],
)
def test_calls_of_the_wrong_kind(options: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"model": make(POINTS), "loss": squared, "n_steps": 5}
    with pytest.raises(error, match=message):
        fit(**(arguments | options))


def test_no_callbacks_are_none() -> None:
    assert fit(make(POINTS), squared, 2, callbacks=None, random_state=0).stopped_ == "finished"
