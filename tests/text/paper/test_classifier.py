"""AnchorTextClassifier: texts and labels of all kinds, stopping, saving, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from files import forged
from prodige.graph import container
from prodige.graph.container import FileFormatError
from prodige.progress import Record
from prodige.text import labels
from prodige.text.labels import check_labels
from prodige.text.paper import AnchorTextClassifier, codec, network
from prodige.text.paper.base import adopt, split
from prodige.text.paper.network import TextNetwork, Training
from prodige.text.vocabulary import Vocabulary
from prodige.text.words import PPMI
from prodige.text.wordvectors import WordVectors

GOOD = ["a fine warm film", "warm and funny", "fine and funny people", "a warm film with fine people"]
BAD = ["dull and long", "a long dull mess", "cold and long", "a mess with dull people"]
TEXTS = [*GOOD, *BAD] * 5
LABELS = np.array([*["good"] * 4, *["bad"] * 4] * 5)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_LEAST_STEPS", 4)


def make(**options: Any) -> AnchorTextClassifier:
    """A small model; its few steps are enough for what is tested with it."""
    return AnchorTextClassifier(
        **{"n_epochs": 2, "n_filters": 4, "n_components": 5, "random_state": 0, "n_jobs": 1, **options}
    )


@pytest.fixture(scope="module")
def model() -> AnchorTextClassifier:
    """One that has learned its texts."""
    return AnchorTextClassifier(n_filters=8, n_components=8, random_state=0, n_jobs=1).fit(TEXTS, LABELS)


# -- what it learns --------------------------------------------------------------------------------------------------


def test_learns(model: AnchorTextClassifier) -> None:
    assert model.score(TEXTS, LABELS) == 1
    assert model.classes_.tolist() == ["bad", "good"]
    probabilities = model.predict_proba(TEXTS)
    assert probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(TEXTS))
    assert 4.5 < model.numbers_per_item_ <= model.numbers_per_item
    assert model.graph_.n_items == len(model.vocabulary_)
    assert model.stopped_ == "finished"
    assert {record.stage for record in model.history_} == {"vectors", "graph"}


def test_each_text_is_predicted_by_itself(model: AnchorTextClassifier) -> None:
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS[:8]])
    np.testing.assert_allclose(alone, model.predict_proba(TEXTS[:8]), rtol=1e-5)


def test_texts_that_say_nothing(model: AnchorTextClassifier) -> None:
    """Empty ones, and those of unknown words, are answered; the first with what the network says to silence."""
    silence, blank, unknown = model.predict_proba(["", "  ...  ", "xylophone zebra"])
    np.testing.assert_array_equal(silence, blank)
    assert np.isfinite(unknown).all()


def test_a_very_long_text(model: AnchorTextClassifier) -> None:
    assert model.predict(["dull " * 100_000 + "x" * 100_000]).tolist() == ["bad"]


def many_texts() -> tuple[list[str], list[int]]:
    """Texts of some hundred words: enough for threads to share out."""
    rng = np.random.default_rng(0)
    labels = [number % 2 for number in range(120)]
    return [" ".join(f"w{rng.zipf(1.3) % 700 + 10 * label}" for _ in range(80)) for label in labels], labels


def as_bytes(fitted: AnchorTextClassifier, texts: list[str], path: Path) -> tuple[bytes, bytes]:
    """The file of a model, and its answers."""
    fitted.save(path)
    return path.read_bytes(), fitted.predict_proba(texts).tobytes()


@pytest.mark.repeatable
@pytest.mark.parametrize("vectors", ["ppmi", "glove"])
def test_same_seed_same_model_on_any_number_of_threads(vectors: str, tmp_path: Path) -> None:
    texts, labels = many_texts()
    options: dict[str, Any] = {"vectors": vectors, "n_filters": 32, "n_components": 30}
    found = [
        as_bytes(make(n_jobs=n_jobs, **options).fit(texts, labels), texts, tmp_path / "model.prodige")
        for n_jobs in (1, 3)
    ]
    assert len(set(found)) == 1
    different = make(random_state=1, **options).fit(texts, labels)
    assert as_bytes(different, texts, tmp_path / "model.prodige")[0] != found[0][0]


@pytest.mark.repeatable
def test_fits_at_the_same_time_are_as_those_alone(tmp_path: Path) -> None:
    """They draw from generators of their own, and leave the seeds of others and the threads of torch alone."""
    texts, labels = many_texts()
    models = [make(random_state=seed, n_jobs=2, n_filters=32) for seed in range(3)]
    alone = [as_bytes(model.fit(texts, labels), texts, tmp_path / "model.prodige") for model in models]
    torch.manual_seed(5)
    state, n_threads = torch.random.get_rng_state(), torch.get_num_threads()
    with ThreadPoolExecutor(3) as pool:
        fits = [pool.submit(clone(model).fit, texts, labels) for model in models]
    together = [as_bytes(fit.result(), texts, tmp_path / "model.prodige") for fit in fits]
    assert together == alone
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == n_threads


def test_more_threads_than_there_is_work_for() -> None:
    """They neither wait for each other nor spin: the processors work as long as they do for one thread."""

    def seconds(n_jobs: int) -> float:
        began = time.process_time()
        make(n_jobs=n_jobs, n_filters=32).fit(TEXTS, LABELS)
        return time.process_time() - began

    seconds(1)  # libraries are loaded
    assert seconds(1000) < 5 * max(seconds(1), 0.1)


def test_the_seeds_of_others_are_left_alone() -> None:
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the global one is what is tested
    legacy: Any = np.random.get_state()  # noqa: NPY002
    states = torch.random.get_rng_state(), legacy[1].copy()
    make().fit(TEXTS, LABELS)
    assert torch.equal(torch.random.get_rng_state(), states[0])
    legacy = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(legacy[1], states[1])


def test_as_an_estimator_of_scikit_learn() -> None:
    estimator = make(numbers_per_item=9.0)
    assert clone(estimator).get_params() == estimator.get_params()
    for call in (estimator.predict, estimator.predict_proba):
        with pytest.raises(NotFittedError):
            call(["text"])
    for name in ("graph_", "size_bytes", "numbers_per_item_"):
        with pytest.raises(NotFittedError):
            getattr(estimator, name)
    with pytest.raises(NotFittedError):
        estimator.save("model.prodige")


# -- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["good", "bad"],
        [1, 0],
        [True, False],
        [-3, 700],
        [0.0, 1.0],
        np.array(["good", "bad"], dtype=object),
        np.array([1, 0], dtype=object),
        np.array([True, False], dtype=object),
        np.array([1, 0], dtype=np.float16),
        np.array([7, 2**63], dtype=np.uint64),
        np.array(["2019-12-08", "2019-12-14"], dtype="datetime64[D]"),
        np.array(["2019-12-08T10:00", "2019-12-14T23:59"], dtype="datetime64[ns]"),
        ["with\nlines, \0 and \ud800", "\u4e2d"],
    ],
    ids=lambda labels: f"{np.asarray(labels).dtype}-{labels[0]}",
)
def test_labels_of_any_type(labels: Any, tmp_path: Path) -> None:
    y = np.repeat(np.asarray(labels), 4)
    fitted = make().fit([*GOOD, *BAD], y)
    assert sorted(fitted.classes_.tolist()) == sorted(set(y.tolist()))
    answers = fitted.predict(TEXTS)
    assert type(answers.tolist()[0]) is type(y.tolist()[0])
    fitted.save(tmp_path / "model.prodige")
    loaded = AnchorTextClassifier.load(tmp_path / "model.prodige")
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.predict(TEXTS).tolist() == answers.tolist()


def test_three_classes() -> None:
    odd = ["green tea", "black tea", "tea and milk", "milk in the tea"]
    texts, y = [*GOOD, *BAD, *odd], np.repeat(["good", "bad", "tea"], 4)
    fitted = AnchorTextClassifier(n_epochs=60, n_filters=8, random_state=0, n_jobs=1).fit(texts, y)
    assert fitted.predict_proba(texts).shape == (12, 3)
    assert fitted.score(texts, y) > 0.8


def test_weights_of_classes_are_by_label() -> None:
    """A class that counts for nothing is never predicted, whatever the labels are called."""
    for one, other in (("good", "bad"), (7, 3)):
        y = [one] * 4 + [other] * 4
        fitted = make(n_epochs=30, class_weight={one: 1000.0, other: 0.001}).fit([*GOOD, *BAD], y)
        assert fitted.predict([*GOOD, *BAD]).tolist() == [one] * 8
    make(class_weight="balanced").fit([*GOOD, *BAD[:2]], [1] * 4 + [0] * 2)


@pytest.mark.parametrize(
    ("class_weight", "error", "message"),
    [
        ("fair", ValueError, "class_weight"),
        (
            {"good": 0},
            ValueError,
            r"class_weight\['good'\] must be a finite number above 0, got 0; leave out the texts",
        ),
        ({"good": -1.0, "bad": 2}, ValueError, r"class_weight\['good'\] must be a finite number above 0, got -1.0"),
        ({"bad": float("nan")}, ValueError, r"class_weight\['bad'\] must be a finite number above 0, got nan"),
        ({"bad": float("inf")}, ValueError, r"class_weight\['bad'\] must be a finite number above 0, got inf"),
        ({"bad": 1e-300}, ValueError, r"class_weight\['bad'\] must be a finite number above 0, got 1e-300"),
        ({"bad": "much"}, TypeError, r"class_weight\['bad'\] must be a number, got 'much'"),
        ({"bad": None}, TypeError, r"class_weight\['bad'\] must be a number, got None"),
        (3, TypeError, "class_weight must be 'balanced', a dict or None, got 3"),
    ],
)
def test_bad_weights_of_classes(
    class_weight: Any, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    with pytest.raises(error, match=message):
        make(class_weight=class_weight).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (["good"] * 40, ValueError, "y has one class only, .*good"),
        ([1.0] * 39 + [np.nan], ValueError, r"y\[39\] = nan \(1 such labels\) is no class"),
        (np.array(["good", None] * 20, dtype=object), ValueError, r"y\[1\] = None \(20 such labels\)"),
        ([0, 1], ValueError, r"one label per text \(40\), got 2"),
        (np.linspace(0, 1, 40), ValueError, "Unknown label type"),
        (np.array([1, "a"] * 20, dtype=object), TypeError, "y has labels of different types"),
        (np.array([1, 2] * 20, dtype="timedelta64[s]"), TypeError, r"type timedelta64\[s\], which a file cannot hold"),
        (np.array([1, 2] * 20, dtype=np.longdouble), TypeError, "which a file cannot hold"),
        ([date(2019, 12, 8), date(2019, 12, 14)] * 20, TypeError, "labels of type date, which a file cannot hold"),
        (np.array([b"a", b"b"] * 20), TypeError, "which a file cannot hold"),
    ],
)
def test_bad_labels(y: Any, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be saved is refused before it is learned."""
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    with pytest.raises(error, match=message):
        make().fit(TEXTS, y)
    assert check_labels(["b", "a", "b"], 3)[1].tolist() == [1, 0, 1]


def test_labels_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    monkeypatch.setattr(labels, "_MOST_LABELS", 2**20)
    with pytest.raises(ValueError, match=r"the longest of 1048576 letters, take 8388608 bytes, more than 1048576"):
        make().fit(["one text", "another"], ["a", "b" * 2**20])
    with pytest.raises(
        ValueError, match=r"y has 100000 labels, one of 16777216 letters: .* 6.25e\+03 GiB; give shorter"
    ):
        check_labels(["a"] * 99_999 + ["b" * 2**24], 100_000)


# -- texts and parameters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, "pass \\[text\\]"),
        ([], ValueError, "at least one text"),
        (["fine", float("nan")], TypeError, r"texts\[1\] = nan"),
        (["fine", None], TypeError, r"texts\[1\] = None"),
        ([b"fine", "dull"], TypeError, "decode it first"),
        ([["fine"], ["dull"]], TypeError, r"texts\[0\] = \['fine'\]"),
        (["", "..."], ValueError, "no token to learn"),
    ],
)
def test_bad_texts(texts: Any, error: type[Exception], message: str, model: AnchorTextClassifier) -> None:
    with pytest.raises(error, match=message):
        make().fit(texts, [0, 1])
    if "token" not in message:
        with pytest.raises(error, match=message):
            model.predict(texts)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_epochs": 0}, "n_epochs must be between 1"),
        ({"n_filters": 0}, "n_filters must be between 1"),
        ({"kernel_size": 0}, "kernel_size must be between 1"),
        ({"n_anchors": 0}, "n_anchors must be between 1"),
        ({"max_vocabulary": 0}, "max_vocabulary must be between 1"),
        ({"vectors": "word2vec"}, "vectors must be 'ppmi', 'glove' or WordVectors, got 'word2vec'"),
        ({"validation_fraction": 1.0}, "validation_fraction must be between 0 and 1, got 1.0"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"numbers_per_item": 2.0}, "numbers_per_item = 2.0 is too little"),
        ({"numbers_per_item": float("nan")}, "numbers_per_item must be a finite number"),
        ({"n_filters": 2**28}, "take tables of 70 GiB, more than 4; lower max_vocabulary, n_anchors or n_filters"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    "texts",
    [["good", "bad"], ["good", "good"], ["", "bad"], ["good good bad", "bad"], ["one two three", "1 2 3"]],
)
def test_a_handful_of_words(texts: list[str]) -> None:
    fitted = make().fit(texts, [1, 0])
    assert np.isfinite(fitted.predict_proba([*texts, "else"])).all()


def test_few_tokens_are_known() -> None:
    fitted = make(max_vocabulary=3).fit(TEXTS, LABELS)
    assert len(fitted.vocabulary_) == 5


def test_given_vectors() -> None:
    words = Vocabulary(["film", "dull", "warm"])
    vectors = WordVectors(words, np.random.RandomState(0).normal(size=(5, 3)).astype(np.float32))
    known = Vocabulary(["warm", "zebra", "film"])
    np.testing.assert_array_equal(adopt(vectors, known), vectors.vectors[[0, 1, 4, 1, 2]])
    fitted = make(vectors=vectors).fit(TEXTS, LABELS)
    assert np.isfinite(fitted.predict_proba(TEXTS)).all()


def test_only_texts_without_pairs_get_random_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make().fit(["one", "two"], [0, 1]).predict(["one"]).shape == (1,)

    def fails(*arguments: Any) -> None:
        raise ValueError("something else is wrong")

    monkeypatch.setattr(PPMI, "_fit", fails)
    with pytest.raises(ValueError, match="something else is wrong"):
        make().fit(TEXTS, LABELS)


def test_words_that_no_file_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "run", lambda *arguments: pytest.fail("it was trained before it was refused"))
    with pytest.raises(ValueError, match=r"words take 335544\d\d bytes, a file has room for 33554432: lower max_vocab"):
        make().fit(["a fine film", "x" * 2**25], [0, 1])


def test_glove_vectors() -> None:
    assert make(vectors="glove").fit(TEXTS, LABELS).predict(TEXTS).shape == (40,)


@settings(max_examples=50, deadline=None)
@given(
    classes=st.lists(st.integers(0, 3), min_size=2, max_size=90).filter(lambda labels: len(set(labels)) > 1),
    fraction=st.floats(0.05, 0.95),
)
def test_what_is_set_aside(classes: list[int], fraction: float) -> None:
    numbers = np.unique(classes, return_inverse=True)[1]
    train, held_out = split(numbers, fraction, seed=3)
    if numbers.size < 40:
        assert train.tolist() == held_out.tolist() == list(range(numbers.size))
        return
    assert sorted([*train, *held_out]) == list(range(numbers.size))
    again = split(numbers, fraction, seed=3)
    np.testing.assert_array_equal(train, again[0])


# -- stopping --------------------------------------------------------------------------------------------------------


def test_a_callback_ends_the_fit() -> None:
    records: list[Record] = []
    for stage, expected in (("vectors", [("vectors", 0)]), ("graph", [("vectors", 0), ("vectors", 1), ("graph", 0)])):
        records.clear()

        def stop(record: Record, stage: str = stage) -> bool:
            return record.stage == stage

        fitted = make(n_epochs=2, callbacks=[records.append, stop]).fit(TEXTS, LABELS)
        assert fitted.stopped_ == "callback"
        assert [(record.stage, record.step) for record in records] == expected
        assert fitted.history_ == records
        assert fitted.predict(TEXTS).shape == (40,)
    with pytest.raises(TypeError, match="callbacks must be a sequence of functions"):
        make(callbacks=print).fit(TEXTS, LABELS)
    assert make(callbacks=None).fit(TEXTS, LABELS).stopped_ == "finished"


def interrupting(stage: str, where: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> AnchorTextClassifier:
    """A model whose fit is interrupted in this stage."""
    if where == "callback":

        def callback(record: Record) -> None:
            if record.stage == stage:
                raise KeyboardInterrupt

        return make(callbacks=[callback], **options)
    step = Training.step

    def interrupted(self: Training, *arguments: Any) -> float:
        if self.stage == stage:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(Training, "step", interrupted)
    return make(**options)


@pytest.mark.parametrize("stage", ["vectors", "graph"])
@pytest.mark.parametrize("where", ["callback", "step"])
def test_an_interrupt_keeps_what_has_been_learned(
    stage: str, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fitted = interrupting(stage, where, monkeypatch)
    if (stage, where) == ("vectors", "step"):  # the very first: there is nothing yet
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(TEXTS, LABELS)
        with pytest.raises(NotFittedError):
            fitted.predict(TEXTS)
        return
    with pytest.warns(ConvergenceWarning, match="interrupted: the network is the best so far"):
        fitted.fit(TEXTS, LABELS)
    assert fitted.stopped_ == "interrupt"
    fitted.save(tmp_path / "model.prodige")
    loaded = AnchorTextClassifier.load(tmp_path / "model.prodige")
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


@pytest.mark.parametrize("stage", ["vectors", "graph"])
def test_an_interrupt_where_torch_records_no_gradients(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first line of ``torch.no_grad`` one leaves it like that; the graph is made all the same."""
    judge = Training.judge

    def interrupted(self: Training, network: TextNetwork) -> tuple[float, float]:
        if self.stage == stage:
            torch.set_grad_enabled(False)
            raise KeyboardInterrupt
        return judge(self, network)

    monkeypatch.setattr(Training, "judge", interrupted)
    fitted = make()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted.fit(TEXTS, LABELS)
    assert torch.is_grad_enabled()
    assert fitted.predict(TEXTS).shape == (40,)
    with torch.no_grad():
        monkeypatch.undo()
        make().fit(TEXTS, LABELS)
        assert not torch.is_grad_enabled()


def test_half_a_fit_is_worth_keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph that is made at once when the first stage is interrupted knows what the vectors did."""
    monkeypatch.setattr(network, "_LEAST_STEPS", 300)

    def callback(record: Record) -> None:
        if record.step == 5:
            raise KeyboardInterrupt

    fitted = make(n_filters=8, n_components=8, n_epochs=8, callbacks=[callback])
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        fitted.fit(TEXTS, LABELS)
    assert {record.stage for record in fitted.history_} == {"vectors"}
    assert fitted.score(TEXTS, LABELS) == 1


class Clock:
    """Counts calls of functions of this package, and interrupts one of them; as Ctrl-C does, but where it is told to.

    Attributes
    ----------
    learned, done : int
        Number of the call when a first step of training was made, and when all was learned.
    """

    def __init__(self, last: float = np.inf) -> None:
        self.n_calls, self.last = 0, last
        self.learned = self.done = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if "prodige" not in path or path.endswith("threads.py"):
            return
        if event == "return" and name == "update" and not self.learned:
            self.learned = self.n_calls
        if event == "return" and name == "_fit" and path.endswith("paper/classifier.py"):
            self.done = self.n_calls
        if event == "call":
            self.n_calls += 1
            if self.n_calls == self.last:
                raise KeyboardInterrupt

    def fit(self, model: AnchorTextClassifier, texts: list[str], labels: Any) -> None:
        sys.setprofile(self)
        try:
            model.fit(texts, labels)
        finally:
            sys.setprofile(None)


def test_interrupts_at_many_moments(tmp_path: Path) -> None:
    """Before a first step the estimator stays as it was; from then on there is a model that can be used and saved."""
    whole = Clock()
    whole.fit(make(), TEXTS, LABELS)
    assert 0 < whole.learned < whole.done
    other = make().fit(["one two", "three four"], [1, 2])
    before = vars(other).copy()
    for last in np.linspace(2, whole.learned - 2, 4).astype(int):
        with pytest.raises(KeyboardInterrupt):
            Clock(last).fit(other, TEXTS, LABELS)
        assert vars(other) == before
    for last in np.linspace(whole.learned + 1, whole.done, 8).astype(int):
        fitted = make()
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            Clock(last).fit(fitted, TEXTS, LABELS)
        assert fitted.stopped_ == "interrupt"
        fitted.save(tmp_path / "model.prodige")
        loaded = AnchorTextClassifier.load(tmp_path / "model.prodige")
        np.testing.assert_array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_a_fit_that_fails_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = make().fit(TEXTS, LABELS)
    before, answers = vars(fitted).copy(), fitted.predict(TEXTS)
    with pytest.raises(ValueError, match="one label per text"):
        fitted.fit(TEXTS, [1, 2, 3])
    monkeypatch.setattr(Training, "run", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted.fit(["other words"] * 3, [1, 2, 3])
    assert vars(fitted) == before
    np.testing.assert_array_equal(fitted.predict(TEXTS), answers)


# -- files -----------------------------------------------------------------------------------------------------------


def test_saved_and_loaded(model: AnchorTextClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    model.save(path)
    assert path.stat().st_size == model.size_bytes
    loaded = AnchorTextClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.graph_.n_edges == model.graph_.n_edges
    assert loaded.size_bytes == model.size_bytes
    assert loaded.get_params()["n_filters"] == 8
    loaded.save(str(path))
    assert path.stat().st_size == model.size_bytes


def rewrite(path: Path, change: dict[str, Any], **others: Any) -> bytes:
    """Return a file with another content and other arrays, and with a checksum that fits."""
    contents = container.read(path)
    network = {name: others.pop(name) for name in set(others) & set(codec.KINDS)}
    arrays = {**contents.arrays, **codec.joined({**codec.split(contents.arrays), **network}), **others}
    return forged("text", {**contents.content, **change}, arrays)


def texts(*labels: str) -> dict[str, NDArray[Any]]:
    return {"classes": container.pack_texts(labels)}


@pytest.mark.parametrize(
    ("change", "arrays", "message"),
    [
        ({}, texts("good"), "2 texts do not"),
        ({}, texts("bad", "good", "other"), "2 texts do not"),
        ({}, texts("good", "bad"), "the classes are not in order"),
        ({}, texts("bad", "bad"), "the classes are not in order"),
        ({}, {"classes": np.zeros(2, np.int64)}, "2 texts do not"),
        ({"class_type": "no type"}, {}, "classes of type 'no type' are not known"),
        ({"class_type": "<U500000000"}, {}, "are not known"),
        ({"class_type": "i1"}, {"classes": np.array([1, 300])}, "2 classes of type i1 are not"),
        ({"class_type": "i8"}, {"classes": np.array([1])}, "2 classes of type i8 are not"),
        ({"class_type": "M8[D]"}, {"classes": np.array([1, 2], "i4")}, r"2 classes of type M8\[D\] are not"),
        ({"class_type": ["U"]}, {}, "do not fit together"),
        ({"parameters": {}}, {}, "the parameters should be"),
        ({"parameters": []}, {}, "the parameters should be"),
        ({"network": {}}, {}, "do not fit together"),
        ({"network": 3}, {}, "do not fit together"),
        ({}, {"edges": np.zeros(3, np.uint8)}, "cannot be right"),
        ({}, {"edges": np.zeros(3, np.float32)}, "edges should be one row of u1"),
        ({}, {"numbers": np.zeros(3, np.float32)}, "cannot be right"),
        ({}, {"numbers": np.zeros((3, 1), np.float32)}, "numbers should be one row of f4"),
        ({}, {"filters": np.zeros(3, np.int8)}, "filters should have 3 dimensions"),
        ({}, {"filters": np.zeros((0, 0, 0), np.int8)}, "cannot be right"),
    ],
)
def test_files_that_make_no_sense(
    model: AnchorTextClassifier, tmp_path: Path, change: dict[str, Any], arrays: dict[str, Any], message: str
) -> None:
    path = tmp_path / "model.prodige"
    model.save(path)
    content = container.read(path)
    container.write(path, "text", {**content.content, **change}, {**content.arrays, **arrays})
    with pytest.raises(FileFormatError, match=message):
        AnchorTextClassifier.load(path)


def test_other_kinds_and_missing_parts(model: AnchorTextClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    model.graph_.save(path)
    with pytest.raises(FileFormatError, match=r"holds a graph, not a text model; open it with prodige\.load or Gr"):
        AnchorTextClassifier.load(path)
    container.write(path, "text", {}, {})
    with pytest.raises(FileFormatError, match="its parts do not fit together"):
        AnchorTextClassifier.load(path)


# A subprocess loads files with little memory to spare, and says what became of each: an error's type, or nothing.
GUARD = """
import resource, sys
from prodige.text.paper import AnchorTextClassifier
from prodige.text.paper import network
AnchorTextClassifier(n_epochs=1, n_filters=2, n_jobs=1).fit(["a b", "c d"], [0, 1]).predict(["a"])  # all is imported
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for path in sys.stdin.read().split():
    try:
        AnchorTextClassifier.load(path).predict(["a long dull mess"])
    except Exception as error:
        print(type(error).__name__)
    else:
        print("")
"""


def opened_with_little_memory(files: list[bytes], folder: Path) -> list[str]:
    paths = [folder / f"{number}.prodige" for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    command = [sys.executable, "-W", "error", "-c", GUARD]
    given = "\n".join(map(str, paths))
    result = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


needs_limits = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")


@needs_limits
def test_files_that_are_damaged_or_ask_for_much_memory(model: AnchorTextClassifier, tmp_path: Path) -> None:
    """Where checksums fit, and files are small, each is refused before it gets what it asks for."""
    model.save(tmp_path / "model.prodige")
    data = tmp_path / "model.prodige"
    n_items = len(model.vocabulary_)

    def zeros(*shape: int, kind: str = "u1") -> NDArray[Any]:
        return np.zeros(shape, kind)

    n_words = 2**18
    words = "\n".join(f"{number:06}" for number in range(n_words)).encode()
    edges = zeros(n_words + 2)
    wide = {"filters": zeros(2**13, 3, 1, kind="i1"), "dense": zeros(2, 2**13, kind="f4")}
    wide |= {"filter_step": zeros(2**13, kind="f4"), "filter_bias": zeros(2**13, kind="f4")}
    bombs = [
        rewrite(
            data,
            {},
            **texts(*map(str, range(10_000, 20_000)), "b" * 2**21),
            dense=zeros(10_001, 8, kind="f4"),
            dense_bias=zeros(10_001, kind="f4"),
        ),
        rewrite(data, {}, **texts(*[""] * 2**20)),
        rewrite(data, {}, between=zeros(2**11, 2**11)),
        rewrite(
            data, {}, between=zeros(2**11, 2**11), center=zeros(2**11, kind="f4"), filters=zeros(8, 2**11, 1, kind="i1")
        ),
        rewrite(
            data, {}, between=zeros(1, 2**21), center=zeros(2**21, kind="f4"), filters=zeros(8, 2**21, 1, kind="i1")
        ),
        rewrite(data, {}, filters=zeros(1, 1, 2**22, kind="i1")),
        rewrite(data, {}, filters=zeros(8, 2**9, 2**10, kind="i1")),
        rewrite(data, {}, tokens=np.frombuffer(b"\n" * 2**20, np.uint8)),
        rewrite(
            data,
            {},
            tokens=np.frombuffer(words, np.uint8),
            **{"n_edges": edges + 1, "hub_low": edges, "hub_high": edges, "length": edges},
            **{"between": zeros(1, 3), "center": zeros(3, kind="f4"), **wide},
        ),
        rewrite(data, {}, n_edges=np.full(n_items, 255, np.uint8)),
        rewrite(data, {}, dense=zeros(2**18, 8, kind="f4"), dense_bias=zeros(2**18, kind="f4")),
    ]
    assert max(map(len, bombs)) < 2**21
    sound = data.read_bytes()
    bad = [*bombs, *damaged_files(sound)]
    assert opened_with_little_memory([*bad, sound], tmp_path) == ["FileFormatError"] * len(bad) + [""]


def damaged_files(data: bytes) -> list[bytes]:
    rng = np.random.default_rng(0)
    damaged = []
    for place in rng.integers(0, len(data), 50):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.integers(8)
        damaged += [bytes(changed), data[:place], data[:place] + bytes(1) + data[place:], data[place:]]
    damaged += [data + b"\0", data + data, data[:-1], b""]
    return [one for one in damaged if one != data]


def test_a_pattern_is_never_taken_from_a_file(model: AnchorTextClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    model.save(path)
    network = container.read(path).content["network"]
    path.write_bytes(rewrite(path, {"network": {**network, "pattern": "(?:a|a)+b"}}))
    loaded = AnchorTextClassifier.load(path)
    assert loaded.vocabulary_.tokenize("a" * 60) == ["a" * 60]  # the pattern above would take years


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "model.prodige"
    path.write_text("plain text")
    with pytest.raises(FileFormatError, match=r"model.prodige' cannot be read as .*: it does not start like one"):
        AnchorTextClassifier.load(path)
    with pytest.raises(FileNotFoundError):
        AnchorTextClassifier.load(tmp_path / "no such file")
