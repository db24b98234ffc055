"""GraphTextClassifier: what it learns, says and saves, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score

import prodige
from corpora import draw
from prodige import GraphTextClassifier
from prodige.graph import container
from prodige.graph.container import FileFormatError
from prodige.text import learning
from prodige.text.ngrams import Orders
from prodige.text.paper import AnchorTextClassifier
from prodige.text.selection import Selection

TEXTS, CLASSES = draw(160)
MORE_TEXTS, MORE_CLASSES = draw(200, 4)


@pytest.fixture(scope="module")
def model() -> GraphTextClassifier:
    return GraphTextClassifier(2000, n_jobs=1).fit(TEXTS, CLASSES)


@pytest.fixture(scope="module")
def larger() -> GraphTextClassifier:
    return GraphTextClassifier(3000, n_jobs=1).fit(MORE_TEXTS, [f"class {label}" for label in MORE_CLASSES])


# -- what it learns --------------------------------------------------------------------------------------------------


def test_new_texts(model: GraphTextClassifier, larger: GraphTextClassifier) -> None:
    texts, classes = draw(300, seed=1)
    assert model.score(texts, classes) > 0.9
    texts, classes = draw(300, 4, seed=1)
    assert larger.score(texts, [f"class {label}" for label in classes]) > 0.6
    assert model.size_bytes <= 2000
    assert larger.size_bytes <= 3000


def test_order_of_words_counts(model: GraphTextClassifier) -> None:
    assert model.predict(["not good", "good not"]).tolist() == [1, 0]
    assert "not good" in model.vertices_


def test_probabilities_are_calibrated() -> None:
    """As many texts are of a class as its probabilities say, although the classes overlap."""
    rng = np.random.default_rng(0)

    def noisy(n: int) -> tuple[list[str], np.ndarray]:
        truth = rng.integers(0, 2, n)
        words = [" ".join(f"w{word}" for word in rng.integers(0, 30, 8)) for _ in range(n)]
        told = np.where(rng.random(n) < 0.8, truth, 1 - truth)
        return [f"{text} sign{label}" for text, label in zip(words, told, strict=True)], truth

    found = GraphTextClassifier(3000, n_jobs=1).fit(*noisy(1500))
    texts, truth = noisy(1500)
    probabilities = found.predict_proba(texts)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    chosen = probabilities.max(axis=1)
    assert chosen.mean() == pytest.approx(np.mean(probabilities.argmax(axis=1) == truth), abs=0.04)


def test_class_weights() -> None:
    texts, classes = draw(300)
    rare = [text for text, label in zip(texts, classes, strict=True) if label][:15]
    texts = [*rare, *(text for text, label in zip(texts, classes, strict=True) if not label)]
    labels = [1] * len(rare) + [0] * (len(texts) - len(rare))
    plain = GraphTextClassifier(1500, n_jobs=1).fit(texts, labels).predict_proba(["common1"])[0, 1]
    balanced = GraphTextClassifier(1500, class_weight="balanced", n_jobs=1).fit(texts, labels)
    assert balanced.predict_proba(["common1"])[0, 1] > plain


def test_texts_without_known_words(model: GraphTextClassifier) -> None:
    rows = model.predict_proba(["", "xyzzy", "...", "\ud800"])
    assert (rows == rows[0]).all()
    assert rows[0] == pytest.approx([0.5, 0.5], abs=0.45)


def test_the_same_for_any_jobs(tmp_path: Path) -> None:
    files = []
    for n_jobs in (1, 2):
        GraphTextClassifier(2000, n_jobs=n_jobs).fit(MORE_TEXTS, MORE_CLASSES).save(tmp_path / "m.prodige")
        files.append((tmp_path / "m.prodige").read_bytes())
    assert files[0] == files[1]


def test_scikit_learn(model: GraphTextClassifier) -> None:
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(GraphTextClassifier(1500, n_jobs=1), TEXTS, CLASSES, cv=2).min() > 0.8
    with pytest.raises(NotFittedError):
        GraphTextClassifier().predict(["a"])


def test_very_few_texts() -> None:
    found = GraphTextClassifier(n_jobs=1).fit(["good film", "bad film"], ["yes", "no"])
    assert found.predict(["good", "bad"]).tolist() == ["yes", "no"]
    assert found.validation_accuracy_ is None
    found = GraphTextClassifier(n_jobs=1).fit(["good", "bad", "fine"], [1, 2, 1])
    assert found.predict(["good", "bad"]).tolist() == [1, 2]


def test_a_long_text(model: GraphTextClassifier) -> None:
    assert model.predict(["word " * 1_000_000 + "not good"]).tolist() == [1]


@pytest.mark.parametrize("labels", [["1", "10", "2"], [1.0, 2.0, 3.0], [True, False, True]])
def test_labels_keep_their_type(labels: list[Any], tmp_path: Path) -> None:
    y = [labels[label] for label in MORE_CLASSES % 3]
    found = GraphTextClassifier(1500, n_jobs=1, callbacks=[lambda record: True]).fit(MORE_TEXTS, y)
    assert set(found.predict(MORE_TEXTS).tolist()) <= set(labels)
    found.save(tmp_path / "m.prodige")
    loaded = GraphTextClassifier.load(tmp_path / "m.prodige")
    assert loaded.classes_.dtype == found.classes_.dtype
    assert loaded.classes_.tolist() == sorted(set(labels))


# -- why -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "larger"])
def test_reasons_add_up(name: str, request: pytest.FixtureRequest) -> None:
    """What the vertices of a text say is what the model says of it; paths are those of the graph."""
    found = request.getfixturevalue(name)
    text = MORE_TEXTS[0]
    reasons = found.explain(text, N=1000)
    scores = found.word_graph_.scores([text], 1)[0] - found.word_graph_.bias
    place = found.classes_.tolist().index(found.predict([text])[0])
    if name == "model":
        expected = scores[0] if place == 1 else -scores[0]
    else:
        expected = scores[place] - np.delete(scores, place).mean()
    assert sum(reason.contribution for reason in reasons) == pytest.approx(expected)
    sizes = [abs(reason.contribution) for reason in reasons]
    assert sizes == sorted(sizes, reverse=True)
    graph, names = found.graph_, found.vertices_
    anchor = graph.n_vertices - found.classes_.size + place
    for reason in reasons[:5]:
        distance = graph.distance(names.index(reason.vertex), anchor)
        assert sum(reason.lengths) == pytest.approx(distance, rel=1e-5)
        assert (reason.path[0], reason.path[-1]) == (reason.vertex, str(found.classes_[place]))
    assert found.explain(text, N=2) == reasons[:2]
    assert found.explain("xyzzy") == []


def test_reasons_for_another_class(model: GraphTextClassifier) -> None:
    for one, other in zip(model.explain("not good", 0), model.explain("not good", 1), strict=True):
        assert one.contribution == -other.contribution
    with pytest.raises(ValueError, match="label = 7 is none of the 2 classes"):
        model.explain("good", 7)
    with pytest.raises(TypeError, match="text must be a string"):
        model.explain(["good"])  # type: ignore[arg-type]


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "larger"])
def test_files(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    found, path = request.getfixturevalue(name), tmp_path / "m.prodige"
    found.save(path)
    assert path.stat().st_size == found.size_bytes
    loaded = prodige.load(path, 1)
    assert isinstance(loaded, GraphTextClassifier)
    np.testing.assert_array_equal(loaded.predict_proba(MORE_TEXTS), found.predict_proba(MORE_TEXTS))
    assert loaded.vertices_ == found.vertices_
    again = tmp_path / "again.prodige"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_skips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What any word may stand between is told apart, explained and saved, in files that earlier versions refuse."""
    monkeypatch.setattr(learning, "_START", replace(learning._START, orders=Orders(2, False, True)))
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    texts = [f"{'not' if label else 'so'} w{rng.integers(0, 10**6)} good" for label in truth]
    texts += [f"{'so' if label else 'not'} w{rng.integers(0, 10**6)} bad" for label in truth]
    found = GraphTextClassifier(1500, n_jobs=1).fit(texts, [*truth, *truth])
    assert found.predict(["not that good", "so very good", "so very bad"]).tolist() == [1, 0, 1]
    assert "not * good" in [reason.vertex for reason in found.explain("not that good")]
    found.save(tmp_path / "m.prodige")
    loaded = GraphTextClassifier.load(tmp_path / "m.prodige")
    np.testing.assert_array_equal(loaded.predict_proba(texts), found.predict_proba(texts))
    assert found._encode()[0]["architecture"] == "skipgrams"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "other"}, "there is no architecture 'other'"),
        ({"n_classes": 1}, "n_classes must be"),
        ({"n_classes": 3}, "classes"),
        ({"class_type": "V8"}, "not known"),
        ({"vertices": np.zeros(9, np.float32)}, "one row of bytes"),
        ({"numbers": np.array([0, 1, np.nan], np.float32)}, "finite"),
        ({"numbers": np.array([0, 2, 1], np.float32)}, "rise"),
        ({"numbers": np.zeros(1, np.float32)}, "0 levels"),
        ({"classes": np.array([1, 0])}, "not in order"),
        ({"vertices": np.zeros(0, np.uint8)}, "."),
    ],
)
def test_forged_files(changes: dict[str, Any], message: str, model: GraphTextClassifier, tmp_path: Path) -> None:
    content, arrays = model._encode()
    for key, value in changes.items():
        (arrays if isinstance(value, np.ndarray) else content)[key] = value
    container.write(tmp_path / "bad.prodige", "text", content, arrays)
    if "vertices" in changes and changes["vertices"].size == 0:  # a stream of zeros is one as well
        return
    with pytest.raises(FileFormatError, match=message):
        GraphTextClassifier.load(tmp_path / "bad.prodige")


@settings(max_examples=25)
@given(noise=st.binary(min_size=1, max_size=64), architecture=st.sampled_from(["ngrams", "skipgrams"]))
def test_any_stream(noise: bytes, architecture: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("noise") / "m.prodige"
    arrays: dict[str, Any] = {
        "vertices": np.frombuffer(noise, np.uint8),
        "numbers": np.array([0, 1, 2], np.float32),
        "classes": np.array([0, 1]),
    }
    container.write(path, "text", {"architecture": architecture, "class_type": "i8", "n_classes": 2}, arrays)
    try:
        loaded = GraphTextClassifier.load(path, 1)
    except FileFormatError:
        return
    assert np.isfinite(loaded.predict_proba(["some text"])).all()


# -- stopping --------------------------------------------------------------------------------------------------------


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, left = Selection._attempt, iter(range(1))

    def interrupted(*arguments: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return attempt(*arguments)

    monkeypatch.setattr(Selection, "_attempt", interrupted)
    found = GraphTextClassifier(1500, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="interrupted: the graph is the best so far"):
        found.fit(TEXTS, CLASSES)
    assert found.stopped_ == "interrupt"
    before = dict(vars(found))
    with pytest.raises(KeyboardInterrupt):  # nothing yet: what was there stays
        found.fit(TEXTS, CLASSES)
    assert vars(found) == before


def test_an_error_leaves_what_was_there(model: GraphTextClassifier) -> None:
    before = dict(vars(model))
    with pytest.raises(ValueError, match="one label per text"):
        model.fit(TEXTS, CLASSES[:-1])
    assert vars(model) == before


def test_little_time() -> None:
    found = GraphTextClassifier(1500, max_time=0.01, n_jobs=1).fit(TEXTS, CLASSES)
    assert len(found.history_) == 1
    assert found.score(TEXTS, CLASSES) > 0.8


# -- the paper's network ---------------------------------------------------------------------------------------------


def test_the_network_of_the_paper(tmp_path: Path) -> None:
    settings = AnchorTextClassifier(n_epochs=1, n_filters=4, n_components=5, n_anchors=8)
    texts, y = TEXTS[::4], CLASSES[::4]
    found = GraphTextClassifier(architecture=settings, random_state=0, n_jobs=1).fit(texts, y)
    alone = clone(settings).set_params(random_state=0, n_jobs=1).fit(texts, y)
    np.testing.assert_array_equal(found.predict_proba(texts), alone.predict_proba(texts))
    assert (found.size_bytes, found.graph_.n_edges) == (alone.size_bytes, alone.graph_.n_edges)
    assert found.vertices_[:2] == ["<pad>", "<unk>"]
    found.save(tmp_path / "m.prodige")
    loaded: Any = prodige.load(tmp_path / "m.prodige", 1)
    np.testing.assert_array_equal(loaded.predict_proba(texts), found.predict_proba(texts))
    assert loaded.architecture.n_filters == 4
    with pytest.raises(ValueError, match="does not say why"):
        found.explain("good")
    late = GraphTextClassifier(architecture=settings, max_time=1e-6, random_state=0, n_jobs=1).fit(texts, y)
    assert late.stopped_ == "callback"
    found.set_params(architecture="ngrams", max_bytes=1500).fit(texts, y)  # nothing of the network is left
    assert found.explain("not good")


def test_kinds_of_models_in_files(model: GraphTextClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m.prodige")
    with pytest.raises(FileFormatError, match="its architecture is 'ngrams', not 'paper'"):
        AnchorTextClassifier.load(tmp_path / "m.prodige")


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "texts", "y", "error", "message"),
    [
        ({}, ["a", "b"], [1, 1], ValueError, "y has one class only"),
        ({}, ["a", None], [1, 2], TypeError, r"texts\[1\] = None is of type NoneType, not text"),
        ({}, "a text", [1], TypeError, r"pass \[text\]"),
        ({}, [], [], ValueError, "at least one text"),
        (
            {},
            ["a"] * 30_000,
            [*range(10_000)] * 3,
            ValueError,
            "y has 10000 classes, at most 256 .* numbers to be pred",
        ),
        ({}, ["a"] * 900, [f"{k}" for k in range(300)] * 3, ValueError, "join some of them, or leave out rare ones$"),
        ({"max_bytes": 10}, TEXTS, CLASSES, ValueError, "max_bytes = 10 is too small for a vertex for each of the 2"),
        ({"max_bytes": 0}, TEXTS, CLASSES, ValueError, "max_bytes must be"),
        ({"max_bytes": "1"}, TEXTS, CLASSES, TypeError, "max_bytes must be"),
        ({"max_time": 0}, TEXTS, CLASSES, ValueError, "max_time must be"),
        ({"architecture": "lstm"}, TEXTS, CLASSES, ValueError, "architecture must be 'ngrams', 'paper'"),
        ({"class_weight": {0: -1}}, TEXTS, CLASSES, ValueError, "class_weight"),
        ({"n_jobs": 0}, TEXTS, CLASSES, ValueError, "n_jobs"),
        ({"callbacks": 3}, TEXTS, CLASSES, TypeError, "callbacks|iterable"),
        ({}, ["...", "!!!", "?"], [0, 1, 1], None, ""),
        ({}, ["...", "--", ";"], [0, 1, 1], ValueError, "texts have no word"),
    ],
)
def test_bad_input(options: dict[str, Any], texts: Any, y: Any, error: Any, message: str) -> None:
    found = GraphTextClassifier(**{"n_jobs": 1, **options})
    if error is None:
        found.fit(texts, y)
        return
    with pytest.raises(error, match=message):
        found.fit(texts, y)
    assert not hasattr(found, "classes_")


def test_the_size_that_would_do() -> None:
    with pytest.raises(ValueError, match="would do") as caught:
        GraphTextClassifier(300, n_jobs=1).fit(TEXTS, CLASSES)
    enough = int(str(caught.value).split("; ")[1].split()[0])
    assert GraphTextClassifier(enough, n_jobs=1).fit(TEXTS, CLASSES).size_bytes <= enough
