"""Word vectors against plain counting, plain AdaGrad in the same order, and the dense decomposition."""

from __future__ import annotations

import _thread
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from prodige import _core
from prodige.text.vocabulary import Vocabulary
from prodige.text.words import PPMI, GloVe, NoPairsError, WordModel, count_cooccurrences, mutual_information
from prodige.text.wordvectors import load_vectors

Floats = NDArray[np.float64]

TOPICS = [
    ["tea", "cup", "hot", "sugar", "milk"],
    ["dog", "cat", "bone", "tail", "fur"],
    ["sea", "ship", "sail", "wave"],
]


def make_texts(n: int = 60, length: int = 12, seed: int = 0) -> list[str]:
    """Texts on one topic each, with words that all have in common."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice([*topic, "the", "a"], length)) for topic in (TOPICS[rng.integers(3)] for _ in range(n))]


def cooccurrences(documents: list[list[int]], n_tokens: int, window: int, harmonic: bool) -> Floats:
    """Count the slow way."""
    counts = np.zeros((n_tokens, n_tokens))
    for document in documents:
        for p, one in enumerate(document):
            for q, other in enumerate(document):
                if 0 < abs(p - q) <= window and min(one, other) >= 2:
                    counts[one, other] += 1 / abs(p - q) if harmonic else 1
    return counts


# -- counting --------------------------------------------------------------------------------------------------------


@given(
    documents=st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=1, max_size=5),
    window=st.integers(1, 15),
    harmonic=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_counts(documents: list[list[int]], window: int, harmonic: bool) -> None:
    ids = np.array([number for document in documents for number in document], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, documents)])
    found = [count_cooccurrences(ids, offsets, 7, window, harmonic, n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_allclose(found[0].toarray(), cooccurrences(documents, 7, window, harmonic), rtol=1e-5)
    np.testing.assert_array_equal(found[0].toarray(), found[1].toarray())
    np.testing.assert_array_equal(found[0].toarray(), found[0].toarray().T)
    assert found[0].dtype == np.float32
    assert found[0].indices.dtype == found[0].indptr.dtype == np.int32
    found[0].check_format()


def test_bad_counts() -> None:
    ids, offsets = np.array([2, 3], dtype=np.int32), np.array([0, 2])
    with pytest.raises(ValueError, match="window must be between 1 and 10000, got 0"):
        count_cooccurrences(ids, offsets, 4, 0)
    with pytest.raises(IndexError, match=r"ids\[1\] = 3 is not a token: there are 3"):
        count_cooccurrences(ids, offsets, 3, 1)
    for bad in ([0, 1], [1, 2], [0, 2, 1, 2], []):
        with pytest.raises(ValueError, match="offsets must rise from 0 to 2"):
            count_cooccurrences(ids, np.array(bad, dtype=np.int64), 4, 1)


# -- GloVe -----------------------------------------------------------------------------------------------------------

MASK = 2**64 - 1


def mix(key: int, value: int) -> int:
    x = (key + (value + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def shuffle(items: list[Any], key: int) -> None:
    for left in range(len(items), 1, -1):
        other = ((mix(key, left) >> 32) * left) >> 32
        items[left - 1], items[other] = items[other], items[left - 1]


def plain_glove(counts: Floats, model: GloVe, seed: int) -> tuple[Floats, list[float]]:
    """AdaGrad over the pairs in the order of the core: a checkerboard of 16 × 16 blocks, shuffled rounds and pairs."""
    n, size, n_blocks = len(counts), model.n_components, 16
    vectors, squares = np.empty((2, n, size)), np.ones((2, n, size))
    biases, bias_squares = np.empty((2, n)), np.ones((2, n))
    for side in (0, 1):
        for word in range(n):
            key = mix(mix(seed, side), word)
            start = [((mix(key, k) >> 11) * 2.0**-53 - 0.5) / size for k in range(size + 2)]
            vectors[side, word] = start[:size]
            biases[side, word] = start[size + side]
    board: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for word in sorted(range(n), key=lambda word: (word % n_blocks, word)):
        for context in np.flatnonzero(counts[word]).tolist():
            board.setdefault((word % n_blocks, context % n_blocks), []).append((word, context))
    losses = []
    for epoch in range(model.n_epochs):
        key = mix(mix(seed, 2), epoch)
        rounds = list(range(n_blocks))
        shuffle(rounds, key)
        errors = []
        for shift in rounds:
            for row in range(n_blocks):
                column = (row + shift) % n_blocks
                pairs = board.get((row, column), [])
                shuffle(pairs, mix(key, row * n_blocks + column))
                for pair in pairs:
                    x = counts[pair]
                    one, other = vectors[0, pair[0]].copy(), vectors[1, pair[1]].copy()
                    error = one @ other + biases[0, pair[0]] + biases[1, pair[1]] - np.log(x)
                    weighted = min(1.0, (x / model.x_max) ** model.alpha) * error
                    errors.append(weighted * error)
                    for side, factor in ((0, other), (1, one)):
                        step = model.learning_rate * weighted * factor
                        vectors[side, pair[side]] -= step / np.sqrt(squares[side, pair[side]])
                        squares[side, pair[side]] += step**2
                        step = model.learning_rate * weighted
                        biases[side, pair[side]] -= step / np.sqrt(bias_squares[side, pair[side]])
                        bias_squares[side, pair[side]] += step**2
        losses.append(float(np.mean(errors)))
    return vectors.sum(axis=0), losses


@pytest.mark.parametrize(("size", "x_max", "alpha"), [(5, 10.0, 0.75), (14, 0.5, 0.4)])
def test_glove_is_plain_adagrad(size: int, x_max: float, alpha: float) -> None:
    texts = make_texts(20)
    model = GloVe(size, window=4, x_max=x_max, alpha=alpha, n_epochs=3, learning_rate=0.1, random_state=7, n_jobs=1)
    model.fit(texts)
    ids, offsets = model.vocabulary_.encode(texts)
    counts = count_cooccurrences(ids, offsets, len(model.vocabulary_), 4).toarray().astype(float)
    seed = int(np.random.RandomState(7).randint(2**31 - 1))
    vectors, losses = plain_glove(counts, model, seed)
    np.testing.assert_allclose(model.vectors_[2:], vectors[2:], atol=1e-5)
    np.testing.assert_allclose(model.loss_curve_, losses, rtol=1e-5)


def test_glove_with_a_wild_learning_rate() -> None:
    with pytest.raises(ValueError, match=r"learning_rate = 1e\+30 is too high: the loss was .* 0.05 is usual"):
        GloVe(4, learning_rate=1e30, n_epochs=20, random_state=0).fit(make_texts())


def test_interrupt() -> None:
    model = GloVe(50, n_epochs=2**30, random_state=0, n_jobs=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    timer = threading.Timer(0.3, _thread.interrupt_main)

    def fit() -> None:
        timer.start()
        model.fit(make_texts())

    try:
        with pytest.raises(KeyboardInterrupt):
            fit()
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not hasattr(model, "vectors_")


# -- PPMI ------------------------------------------------------------------------------------------------------------


def plain_mutual_information(counts: Floats, smoothing: float, shift: float) -> Floats:
    p = counts / counts.sum()
    contexts = p.sum(axis=0) ** smoothing / (p.sum(axis=0) ** smoothing).sum()
    chance = np.outer(p.sum(axis=1), contexts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.maximum(np.log(p / chance) - np.log(shift), 0)))


@given(
    rows=st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 4), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    smoothing=st.sampled_from([0.5, 0.75, 1.0]),
    shift=st.sampled_from([1.0, 3.0, 0.5]),
)
@settings(max_examples=50, deadline=None)
def test_mutual_information(rows: list[list[int]], smoothing: float, shift: float) -> None:
    counts = np.array(rows) + np.array(rows).T
    if not counts.any():
        return
    before = csr_array(counts.astype(np.float32))
    found = mutual_information(before, smoothing, shift)
    np.testing.assert_allclose(found.toarray(), plain_mutual_information(counts, smoothing, shift), atol=1e-5)
    np.testing.assert_array_equal(before.toarray(), counts)
    assert (found.data > 0).all()


@pytest.mark.parametrize("k", [3, 14])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_ppmi_is_the_best_approximation(k: int, weight: float) -> None:
    texts = make_texts()
    model = PPMI(k, window=3, smoothing=0.8, weight=weight, random_state=0).fit(texts)
    ids, offsets = model.vocabulary_.encode(texts)
    counts = count_cooccurrences(ids, offsets, len(model.vocabulary_), 3, harmonic=False).toarray()
    left, values, _ = np.linalg.svd(plain_mutual_information(counts[2:, 2:], 0.8, 1.0))
    target = left[:, :k] * values[:k] ** weight
    np.testing.assert_allclose(model.singular_values_, values[:k], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.vectors_[2:] @ model.vectors_[2:].T, target @ target.T, atol=2e-3)


def test_components_beyond_the_words_are_zero() -> None:
    model = PPMI(n_components=50, weight=0.0, random_state=0).fit(["a b c", "b c d"])
    assert model.vectors_.shape == (6, 50)
    assert np.isfinite(model.vectors_).all()
    assert not model.vectors_[:, 6:].any()
    assert not model.singular_values_[6:].any()


# -- both ------------------------------------------------------------------------------------------------------------

MODELS = [GloVe(8, window=5, n_epochs=30, random_state=0), PPMI(8, random_state=0)]
both = pytest.mark.parametrize("model", MODELS, ids=["glove", "ppmi"])


@pytest.mark.repeatable
@pytest.mark.parametrize("model", [GloVe(100, n_epochs=2, random_state=0), PPMI(20, random_state=0)])
def test_the_same_bits_for_any_jobs(model: WordModel) -> None:
    """On texts that are worth several threads."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{number}" for number in rng.integers(0, 800, 100)) for _ in range(800)]
    fits = [clone(model).set_params(n_jobs=n_jobs).fit(texts) for n_jobs in (1, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.vectors_, fits[0].vectors_)
    different = clone(model).set_params(random_state=1).fit(texts)
    assert not np.array_equal(different.vectors_, fits[0].vectors_)


@both
def test_threads_are_no_more_than_the_texts_are_worth(model: WordModel, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    count, glove = _core.count_cooccurrences, _core.Glove

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[-1])
        return (count if len(arguments) == 7 else glove)(*arguments)

    monkeypatch.setattr(_core, "count_cooccurrences", counting)
    monkeypatch.setattr(_core, "Glove", counting)
    clone(model).set_params(n_jobs=1000).fit(make_texts(40))
    assert set(asked) == {1}


@both
def test_a_fit_that_fails_leaves_the_last_one(model: WordModel) -> None:
    fitted = clone(model).fit(make_texts())
    before = vars(fitted).copy()
    with pytest.raises(NoPairsError, match="no two words"):
        fitted.fit(["one", "word"])
    fitted.set_params(**{"window": 0})
    with pytest.raises(ValueError, match="window") as refused:
        fitted.fit(["one word"])
    assert not isinstance(refused.value, NoPairsError)
    assert vars(fitted) == {**before, "window": 0}


@both
def test_words_of_a_topic_are_alike(model: WordModel) -> None:
    model = clone(model).fit(make_texts(300))
    for topic in TOPICS:
        for token in topic:
            found = [other for other, _ in model.most_similar(token, N=len(topic) - 1)]
            assert len(set(found) & set(topic)) >= len(topic) - 2


@both
def test_special_rows(model: WordModel) -> None:
    model = clone(model).fit(make_texts())
    n_words = len(model.vocabulary_) - 2
    assert n_words == 16
    assert not model.vectors_[0].any()
    np.testing.assert_allclose(model.vectors_[1], model.vectors_[-2:].mean(axis=0), rtol=1e-6)
    assert model.vectors_.dtype == np.float32


@both
def test_a_vocabulary_of_the_users(model: WordModel) -> None:
    vocabulary = Vocabulary(["cat", "the", "dog", "never"])
    fitted = clone(model).fit(make_texts(), vocabulary=vocabulary)
    assert fitted.vocabulary_ is vocabulary
    assert fitted.vectors_.shape == (6, 8)
    encoded = clone(model).fit_ids(*vocabulary.encode(make_texts()), vocabulary)
    np.testing.assert_array_equal(encoded.vectors_, fitted.vectors_)
    assert len(clone(model).set_params(max_vocabulary=3).fit(make_texts()).vocabulary_) == 5
    with pytest.raises(TypeError, match=r"vocabulary must be a Vocabulary, got \['cat'\]"):
        clone(model).fit(make_texts(), vocabulary=["cat"])


@both
def test_save_and_load(model: WordModel, tmp_path: Path) -> None:
    model = clone(model).fit(make_texts())
    model.save(tmp_path / "words.txt")
    again = load_vectors(tmp_path / "words.txt")
    assert again.vocabulary.tokens == model.vocabulary_.tokens
    np.testing.assert_array_equal(again.vectors, model.vectors_)
    assert again.most_similar("cat") == model.most_similar("cat")


@both
def test_parameters_are_left_alone(model: WordModel) -> None:
    before = clone(model).get_params()
    fitted = clone(model)
    assert fitted.fit(make_texts()) is fitted
    assert fitted.get_params() == before
    with pytest.raises(NotFittedError):
        clone(model).most_similar("cat")
    with pytest.raises(NotFittedError):
        clone(model).save("words.txt")


@both
@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, "texts must be a list of texts"),
        (["a b", float("nan")], TypeError, r"texts\[1\] = nan"),
        ([], ValueError, "texts must have at least one text"),
        (["", "..."], ValueError, "texts have no token to learn"),
        (["one", "word", "each"], ValueError, "texts have no two words within window=5 of each other"),
    ],
)
def test_bad_texts(model: WordModel, texts: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clone(model).fit(texts)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GloVe(n_components=0), "n_components must be between 1"),
        (GloVe(max_vocabulary=0), "max_size must be between 1"),
        (GloVe(window=0), "window must be between 1 and 10000, got 0"),
        (GloVe(x_max=0), "x_max must be a finite number above 0, got 0"),
        (GloVe(alpha=float("nan")), "alpha must be a finite number above 0, got nan"),
        (GloVe(learning_rate=float("inf")), "learning_rate must be a finite number above 0, got inf"),
        (GloVe(n_epochs=0), "n_epochs must be between 1"),
        (GloVe(n_jobs=0), "n_jobs must not be 0"),
        (PPMI(smoothing=1.5), "smoothing must be a finite number above 0 and at most 1, got 1.5"),
        (PPMI(shift=-1), "shift must be a finite number above 0, got -1"),
        (PPMI(weight=-1), "weight must be a finite number, 0 or more, got -1"),
    ],
)
def test_bad_parameters(model: WordModel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(["a b c"])


def test_parameters_of_another_type() -> None:
    with pytest.raises(TypeError, match="x_max must be a number, got '10'"):
        GloVe(x_max="10").fit(["a b c"])  # type: ignore[arg-type]
