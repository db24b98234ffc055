"""VectorTextClassifier: trained directly or distilled, in 32 bits or 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from prodige.baselines import VectorTextClassifier
from prodige.baselines.vector_text import to_codes
from prodige.progress import Record
from prodige.text.paper import network
from prodige.text.paper.network import Training

TEXTS = ["a fine warm film", "warm and funny", "dull and long", "a long dull mess"] * 11
LABELS = ["good", "good", "bad", "bad"] * 11


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_LEAST_STEPS", 4)


def make(**options: Any) -> VectorTextClassifier:
    return VectorTextClassifier(**{"n_components": 3, "n_filters": 4, "random_state": 0, "n_jobs": 1, **options})


@pytest.mark.parametrize("distill", [None, 6])
def test_learns(distill: int | None) -> None:
    model = make(distill=distill, n_epochs=40, n_filters=12).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.7
    assert model.network_.embedding.weight.shape == (len(model.vocabulary_), 3)
    stages = {record.stage for record in model.history_}
    assert stages == ({"vectors"} if distill is None else {"vectors", "short vectors"})


@pytest.mark.repeatable
@pytest.mark.parametrize("distill", [None, 12])
def test_same_seed_same_model_on_any_number_of_threads(distill: int | None) -> None:
    rng = np.random.default_rng(0)
    labels = [number % 2 for number in range(120)]
    texts = [" ".join(f"w{rng.zipf(1.3) % 700 + 10 * label}" for _ in range(80)) for label in labels]
    options: dict[str, Any] = {"distill": distill, "n_components": 9, "n_filters": 32, "n_epochs": 2, "bits": 4}
    fits = [make(n_jobs=n_jobs, **options).fit(texts, labels) for n_jobs in (1, 1, 2, 3)]
    first, *others = (fitted.network_.state_dict() for fitted in fits)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.predict_proba(texts), fits[0].predict_proba(texts))
    different = make(random_state=1, **options).fit(texts, labels).network_.state_dict()
    assert not torch.equal(first["dense.weight"], different["dense.weight"])


def test_coordinates_in_eight_bits() -> None:
    whole, rounded = (make(bits=bits, n_epochs=2).fit(TEXTS, LABELS) for bits in (32, 8))
    vectors, codes = (model.network_.embedding.weight.numpy() for model in (whole, rounded))  # type: ignore[operator]
    step = np.abs(vectors).max(axis=0) / 127
    assert (np.abs(codes - vectors) <= step / 2 * (1 + 1e-3)).all()
    assert all(np.unique(codes[:, column]).size <= 255 for column in range(3))
    filters = rounded.network_.convolution.weight
    assert all(np.unique(filters[:, column].numpy()).size <= 255 for column in range(3))
    assert not torch.equal(filters, whole.network_.convolution.weight)
    # Of so few words, names and heads of arrays are most of a file.
    long = [make(bits=bits, n_epochs=1, n_components=9, n_filters=60).fit(TEXTS, LABELS) for bits in (32, 8)]
    assert long[1].size_bytes < 0.6 * long[0].size_bytes


def test_fewer_bits_make_smaller_files_and_larger_errors() -> None:
    models = {bits: make(bits=bits, n_epochs=2, n_components=8).fit(TEXTS, LABELS) for bits in (32, 8, 5, 3)}
    exact, *others = (model.network_.embedding.weight.numpy() for model in models.values())  # type: ignore[operator]
    errors = [float(np.square(other - exact).mean()) for other in others]
    assert errors == sorted(errors)
    for bits, codes in zip((8, 5, 3), others, strict=True):
        assert all(np.unique(codes[:, column]).size <= 2**bits - 1 for column in range(8))
    sizes = [model.size_bytes for model in models.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_cutting_off_the_largest_lowers_the_error() -> None:
    values = np.random.RandomState(0).normal(size=(1000, 2)).astype(np.float32)
    values[0] = 30  # one word far from all others
    share = np.ones((1000, 1))
    share[0] = 1e-6
    codes, steps = to_codes(values, 4, share)
    plain = np.abs(values).max() / 7
    error = float((share * np.square(codes * steps - values)).sum())
    assert error < 0.5 * float((share * np.square(np.rint(values / plain) * plain - values)).sum())
    assert np.abs(codes).max() == 7


def test_an_interrupt_is_told_in_both_stages() -> None:
    for stage in ("vectors", "short vectors"):

        def callback(record: Record, stage: str = stage) -> None:
            if record.stage == stage:
                raise KeyboardInterrupt

        model = make(distill=5, n_epochs=2, callbacks=[callback])
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(TEXTS, LABELS)
        assert model.stopped_ == "interrupt"
        assert np.isfinite(model.predict_proba(TEXTS)).all()
        assert model.network_.embedding.embedding_dim == 3  # of the length asked for, not of the first stage


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"bits": 16}, "bits must be 2 to 8, or 32, got 16"), ({"distill": 0}, "distill must be between 1")],
)
def test_bad_parameters(parameters: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        make().size_bytes  # noqa: B018 - the property raises
