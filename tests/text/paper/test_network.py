"""The network over texts: parts of a corpus, batches, dropout, means of weights, and when training ends."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from prodige.progress import Record
from prodige.text.paper import network as text_network
from prodige.text.paper.network import (
    Average,
    Corpus,
    Dropout,
    Examples,
    TextNetwork,
    Training,
    batches,
    split_by_length,
)


def corpus_of(*texts: list[int]) -> Corpus:
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    return Corpus(np.array([token for text in texts for token in text], dtype=np.int32), offsets)


def texts_of(corpus: Corpus) -> list[list[int]]:
    bounds = zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
    return [corpus.tokens[first:end].tolist() for first, end in bounds]


def network(n_tokens: int = 10, n_classes: int = 2, seed: int = 0) -> TextNetwork:
    torch.manual_seed(seed)
    return TextNetwork(nn.Embedding(n_tokens, 4), n_classes, n_filters=6, kernel_size=3, n_jobs=1)


Texts = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8)


@settings(max_examples=50, deadline=None)
@given(texts=Texts, data=st.data())
def test_take(texts: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9)) if texts else []
    taken = corpus_of(*texts).take(np.array(rows, dtype=np.int64))
    assert texts_of(taken) == [texts[row] for row in rows]
    assert len(taken) == len(rows)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(0, 300))
def test_batches_hold_every_text_once(n: int) -> None:
    order = np.random.default_rng(0).permutation(n)
    found = list(batches(order))
    assert all(0 < rows.size <= text_network.BATCH for rows in found)
    np.testing.assert_array_equal(np.concatenate([*found, np.empty(0, np.int64)]), order)


@settings(max_examples=50, deadline=None)
@given(texts=Texts, n_tokens=st.integers(1, 9))
def test_parts_are_all_texts_in_their_order(texts: list[list[int]], n_tokens: int) -> None:
    offsets = corpus_of(*texts).offsets
    parts = split_by_length(offsets, n_tokens)
    assert np.concatenate(parts).tolist() == list(range(len(texts)))
    for rows in parts:  # no more than asked for, beside the last text of a part
        assert sum(len(texts[row]) for row in rows[:-1]) <= n_tokens


@settings(max_examples=50, deadline=None)
@given(texts=Texts.filter(bool))
def test_predictions_do_not_depend_on_what_else_there_is(texts: list[list[int]]) -> None:
    model = network()
    corpus = corpus_of(*texts)
    together = model.predict(corpus)
    alone = [model.predict(corpus_of(text)) for text in texts]
    torch.testing.assert_close(together, torch.cat(alone))
    torch.testing.assert_close(model(corpus).detach(), together)


def test_predictions_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, model = corpus_of([1, 2, 3], [], [4] * 20, [5, 6]), network()
    expected = model.predict(corpus)
    monkeypatch.setattr(text_network, "_PART", 4)
    assert torch.equal(model.predict(corpus), expected)


# -- dropout and means -----------------------------------------------------------------------------------------------


def test_dropout_hides_as_many_as_it_says_and_keeps_the_mean() -> None:
    dropout = Dropout(np.random.default_rng(0))
    tokens = dropout.hide(np.arange(20_000, dtype=np.int32), 99_999)
    hidden = tokens == 99_999
    assert hidden.mean() == pytest.approx(text_network.WORD_DROPOUT, abs=0.02)
    assert (tokens[~hidden] == np.flatnonzero(~hidden)).all()
    answers = dropout.thin(torch.ones(100, 200))
    assert set(answers.flatten().tolist()) == {0.0, 1 / (1 - text_network.FILTER_DROPOUT)}
    assert float(answers.mean()) == pytest.approx(1, abs=0.05)


def test_hidden_tokens_are_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of them hidden and no filter left out, a text is as good as none."""
    monkeypatch.setattr(text_network, "WORD_DROPOUT", 1.1)
    monkeypatch.setattr(text_network, "FILTER_DROPOUT", 0.0)
    model = network()
    answer = model(corpus_of([1, 2, 3]), Dropout(np.random.default_rng(0)))
    torch.testing.assert_close(answer, model(corpus_of([])))


def test_a_mean_of_weights_forgets_its_start() -> None:
    model = network()
    start = copy.deepcopy(model)
    model.embedding.weight.requires_grad_(False)
    average = Average(model)
    with torch.no_grad():
        model.dense.weight.fill_(7.0)
    average.update()
    first = average.network.dense.weight
    share = 1 - 2 / 11  # the memory is short at first
    torch.testing.assert_close(first, start.dense.weight * (1 - share) + 7.0 * share)
    for _ in range(400):
        average.update()
    torch.testing.assert_close(average.network.dense.weight, model.dense.weight)
    assert torch.equal(average.network.embedding.weight, start.embedding.weight)  # type: ignore[arg-type]


# -- training --------------------------------------------------------------------------------------------------------


def examples() -> Examples:
    """Texts with token 1 are of class 1."""
    rng = np.random.default_rng(0)
    classes = np.arange(30) % 2
    texts = [[*rng.integers(2, 10, 3).tolist(), int(one)] for one in classes]
    return Examples(corpus_of(*texts), classes)


def training(n_epochs: int = 4, **options: Any) -> Training:
    data = examples()
    random = np.random.default_rng(options.pop("seed", 0))
    return Training(data, data, torch.ones(2), n_epochs, random, "test", **options)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_network, "_LEAST_STEPS", 5)


def groups(model: TextNetwork, rate: float = 0.02) -> list[dict[str, Any]]:
    return [{"params": model.parameters(), "lr": rate}]


FIELDS = {"step", "progress", "loss", "seconds", "stage", "validation_loss", "accuracy"}


def test_training_learns_and_reports() -> None:
    records: list[Record] = []
    run = training(12, patience=12, report=lambda record: bool(records.append(record)))  # type: ignore[func-returns-value]
    model = network()
    trained = run.run(model, groups(model))
    assert [record.step for record in records] == list(range(12))
    assert set(records[0].known()) == FIELDS
    assert (records[-1].validation_loss or 0) < (records[0].validation_loss or 0)
    assert records[-1].accuracy == 1
    best = min(record.validation_loss or 0.0 for record in records)
    assert run.judge(trained)[0] == pytest.approx(best, rel=1e-5)
    assert not run.interrupted


def test_same_seed_same_weights() -> None:
    states = []
    for _ in range(2):
        model = network()
        states.append(training(2).run(model, groups(model)).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_run_ends_when_nothing_gets_better(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([0.5, 0.3, 0.4, 0.35, 0.1])
    seen: list[TextNetwork] = []

    def judge(self: Training, model: TextNetwork) -> tuple[float, float]:
        seen.append(copy.deepcopy(model))
        return (next(losses), 0.5)

    monkeypatch.setattr(Training, "judge", judge)
    model = network()
    trained = training(5, patience=2).run(model, groups(model))
    assert len(seen) == 4  # two epochs after the second, which was the best
    assert torch.equal(trained.dense.weight, seen[1].dense.weight)


def test_a_warm_start_that_nothing_improves_on_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([0.2, 0.5, 0.3])
    monkeypatch.setattr(Training, "judge", lambda self, model: (next(losses), 0.5))
    model = network()
    trained = training(5, patience=2, warm=True).run(model, groups(model))
    assert all(
        torch.equal(mine, theirs) for mine, theirs in zip(trained.parameters(), network().parameters(), strict=True)
    )
    assert not torch.equal(model.dense.weight, network().dense.weight)


def test_a_report_can_end_a_run() -> None:
    records: list[Record] = []

    def report(record: Record) -> bool:
        records.append(record)
        return len(records) == 2

    model = network()
    training(5, report=report).run(model, groups(model))
    assert len(records) == 2


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("n_calls", [0, 1, 7])
@pytest.mark.parametrize("where", ["step", "judge", "report"])
def test_an_interrupt_leaves_the_best_so_far(
    where: str, n_calls: int, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is anything: the network that came, if it was learned before, or the mean of the steps so far."""
    records: list[Record] = []
    model = network()
    run = training(10, patience=10, warm=warm, report=lambda record: bool(records.append(record)))  # type: ignore[func-returns-value]
    untouched, calls = getattr(run, where), iter(range(100))

    def interrupted(*arguments: Any) -> Any:
        is_last = next(calls) == n_calls
        if is_last and where != "report":
            raise KeyboardInterrupt
        answer = untouched(*arguments)
        if is_last:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(run, where, interrupted)
    if where == "step" and n_calls == 0 and not warm:
        with pytest.raises(KeyboardInterrupt):
            run.run(model, groups(model))
        return
    trained = run.run(model, groups(model))
    assert run.interrupted
    monkeypatch.undo()
    start = run.judge(network())[0]
    reached = run.judge(trained)[0]
    if records:
        best = min(record.validation_loss or 0.0 for record in records)
        assert reached == pytest.approx(min(best, start) if warm else best, rel=1e-5)
    elif warm:
        assert reached == pytest.approx(start, rel=1e-5)
    else:
        assert reached != start


def test_weights_of_classes_count() -> None:
    """With all the weight on one class, everything is taken for it."""
    run = training(8, patience=8)
    run.class_weight = torch.tensor([0.001, 10.0])
    model = network()
    trained = run.run(model, groups(model, 0.05))
    assert (trained.predict(run.train.corpus).argmax(dim=1) == 1).all()
