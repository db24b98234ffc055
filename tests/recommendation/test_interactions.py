"""Interactions in every form, and what a recommender makes of scores, against plain sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from prodige.recommendation import interactions
from prodige.recommendation.interactions import Recommender, best, check_interactions

TABLE = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 1]])


class Answers(Recommender):
    """Gives the scores of a table."""

    def __init__(self, table: Any = None) -> None:
        self.table = table

    def fit(self, user_items: Any, y: Any = None) -> Answers:
        self._remember(check_interactions(user_items))
        return self

    def _scores(self, users: NDArray[np.int64]) -> NDArray[Any]:
        return np.array(self.table)[users]


def fitted(table: Any) -> Answers:
    return Answers(table).fit(np.ones(np.shape(table)))


def sorted_rows(scores: NDArray[np.float32], n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best of each row, the slow way."""
    ids = np.full((len(scores), n), -1, dtype=np.int32)
    values = np.full((len(scores), n), -np.inf, dtype=np.float32)
    for row, entries in enumerate(scores.tolist()):
        order = sorted((-value, column) for column, value in enumerate(entries) if value > -np.inf)[:n]
        for place, (value, column) in enumerate(order):
            ids[row, place], values[row, place] = column, -value
    return ids, values


# -- interactions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_every_form(format_: str, kind: str, dtype: str) -> None:
    table = TABLE.astype(dtype)
    given_ = getattr(scipy.sparse, f"{format_}_{kind}")(table)
    for form in (given_, table):
        result = check_interactions(form)
        assert isinstance(result, csr_array)
        assert result.dtype == np.float32
        assert result.has_canonical_format
        assert result.nnz == 4
        assert_array_equal(result.toarray(), table)
    assert_array_equal(given_.toarray(), table)


def test_lists_are_tables() -> None:
    assert_array_equal(check_interactions([[1, 0], [0, 2]]).toarray(), [[1, 0], [0, 2]])


def test_duplicates_add_up_and_zeros_go() -> None:
    pairs = coo_array(([1, 2, 0, 5], ([1, 1, 0, 2], [3, 3, 0, 1])), shape=(3, 4))
    assert_array_equal(check_interactions(pairs).toarray(), [[0, 0, 0, 0], [0, 0, 0, 3], [0, 5, 0, 0]])
    assert check_interactions(pairs).nnz == 2
    twice = csr_array((np.array([True, True]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert check_interactions(twice).data.tolist() == [2]


def test_the_input_is_left_alone() -> None:
    unsorted = csr_array(
        (np.array([1.0, 0.0, 2.0], dtype=np.float32), np.array([3, 1, 3]), np.array([0, 3, 3])), shape=(2, 4)
    )
    arrays = [part.copy() for part in (unsorted.data, unsorted.indices, unsorted.indptr)]
    result = check_interactions(unsorted)
    assert (result.indices.tolist(), result.data.tolist()) == ([3], [3])
    result.data[:] = 9
    for part, before in zip((unsorted.data, unsorted.indices, unsorted.indptr), arrays, strict=True):
        assert_array_equal(part, before)
    clean = check_interactions(TABLE)
    check_interactions(clean).data[:] = 9
    assert_array_equal(clean.toarray(), TABLE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e300])
def test_values_that_say_nothing(value: float) -> None:
    table = TABLE.astype(float)
    table[2, 3] = value
    for form in (table, csr_array(table), scipy.sparse.csc_matrix(table)):
        with pytest.raises(ValueError, match=r"train\[2, 3\] = .* \(1 such entries\): values must be finite"):
            check_interactions(form, "train")
    # Together they would be fine.
    with pytest.raises(ValueError, match=r"user_items\[0, 0\] = -1"):
        check_interactions(coo_array(([-1, 2], ([0, 0], [0, 0]))))


@pytest.mark.parametrize(
    ("form", "error", "message"),
    [
        ([1, 2], ValueError, r"two axes, users and items, got shape \(2,\)"),
        (np.ones((2, 2, 2)), ValueError, r"two axes"),
        (coo_array([1, 2]), ValueError, r"two axes"),
        (3, ValueError, r"two axes"),
        (np.ones((0, 3)), ValueError, r"must have users and items, got shape \(0, 3\)"),
        (csr_array((3, 0)), ValueError, r"must have users and items"),
        (np.zeros((2, 3)), ValueError, r"of shape \(2, 3\) has no interaction"),
        (csr_array((2, 3)), ValueError, r"has no interaction"),
        ([["a", "b"]], TypeError, r"real numbers, got dtype <U1"),
        (np.ones((2, 2), dtype=complex), TypeError, r"real numbers, got dtype complex"),
    ],
)
def test_what_is_no_table_of_interactions(form: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_interactions(form)


# -- the best of a row -----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 9), st.integers(1, 700), st.integers(1, 40), st.integers(2, 2000), st.integers(0, 2**32 - 1))
def test_best_is_what_sorting_gives(n_rows: int, n_columns: int, n: int, n_values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, n_values, (n_rows, n_columns)).astype(np.float32)
    scores[rng.random(scores.shape) < rng.choice([0, 0.2, 0.99])] = -np.inf
    n = min(n, n_columns)
    for found, target in zip(best(scores, n), sorted_rows(scores, n), strict=True):
        assert found.dtype == target.dtype
        assert_array_equal(found, target)


@pytest.mark.parametrize("n", [1, 10, 300, 2999, 3000])
def test_best_of_long_rows(n: int) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=3000), np.zeros(3000), np.arange(3000), -np.arange(3000), np.repeat([1, 0], 1500)]
    scores = np.array([*rows, np.where(np.arange(3000) == 2999, np.inf, -np.inf)], dtype=np.float32)
    for found, target in zip(best(scores, n), sorted_rows(scores, n), strict=True):
        assert_array_equal(found, target)


# -- recommenders ----------------------------------------------------------------------------------------------------

SCORES = np.random.default_rng(1).integers(0, 8, (7, 12)).astype(np.float32)
INTERACTED = np.random.default_rng(2).random((7, 12)) < 0.3


def test_sizes_are_kept() -> None:
    model = fitted(SCORES)
    assert (model.n_users_, model.n_items_, model.n_features_in_) == (7, 12, 12)
    with pytest.raises(NotFittedError):
        clone(model).scores([0])
    with pytest.raises(NotFittedError):
        clone(model).recommend([0])


def test_scores() -> None:
    model = fitted(SCORES)
    assert_array_equal(model.scores([3, 1, 3]), SCORES[[3, 1, 3]])
    assert_array_equal(model.scores([3, 1], [5, 5, 0]), SCORES[np.ix_([3, 1], [5, 5, 0])])
    assert model.scores(2).shape == (1, 12)
    assert model.scores([]).shape == (0, 12)
    assert model.scores([2], []).shape == (1, 0)
    assert Answers(SCORES.astype(int).tolist()).fit(SCORES + 1).scores([0]).dtype == np.float32


@pytest.mark.parametrize("n", [1, 5, 12, 20])
@pytest.mark.parametrize("block", [1, 30, 1000])
def test_recommend_is_what_sorting_gives(n: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interactions, "_BLOCK", block)
    model = fitted(SCORES)
    users = np.array([6, 0, 3, 3, 5])
    left = np.where(INTERACTED[users], -np.inf, SCORES[users]).astype(np.float32)
    left[:, [2, 4]] = -np.inf
    for user_items in (
        INTERACTED[users],
        csr_array(INTERACTED)[users],
        csr_matrix(INTERACTED)[users],
        csr_array(INTERACTED).tocoo().tocsr()[users],
    ):
        ids, scores = model.recommend(users, user_items, N=n, filter_items=[4, 2, 4])
        assert ids.dtype == np.int32
        assert scores.dtype == np.float32
        assert ids.shape == (5, n)
        target = sorted_rows(left, n)
        assert_array_equal(ids, target[0])
        assert_array_equal(scores, target[1])
    # Of some items only.
    left[:, [0, 1, 9]] = -np.inf
    chosen = [11, 3, 5, 6, 7, 8, 10, 3, 2]
    ids, scores = model.recommend(users, INTERACTED[users], N=n, filter_items=[2, 4], items=chosen)
    target = sorted_rows(left, n)
    assert_array_equal(ids, target[0])
    assert_array_equal(scores, target[1])


def test_a_single_user() -> None:
    model = fitted(SCORES)
    many = model.recommend([4], INTERACTED[[4]], N=3)
    for user_items in (
        INTERACTED[[4]],
        INTERACTED[4],
        csr_array(INTERACTED)[[4]],
        csr_array(INTERACTED)[4],
        csr_matrix(INTERACTED)[4],
    ):
        ids, scores = model.recommend(4, user_items, N=3)
        assert_array_equal(ids, many[0][0])
        assert_array_equal(scores, many[1][0])
    assert model.recommend(np.int32(4), INTERACTED[4], N=3)[0].shape == (3,)
    assert model.recommend([], INTERACTED[:0], N=3)[0].shape == (0, 3)


@pytest.mark.parametrize("users", [4, [4, 1]])
def test_no_items_to_choose_from(users: Any) -> None:
    ids, scores = fitted(SCORES).recommend(users, INTERACTED[users], N=3, items=[])
    assert ids.shape == scores.shape == (*np.shape(users), 3)
    assert (ids == -1).all()
    assert (scores == -np.inf).all()
    nothing_left = fitted(SCORES).recommend(users, INTERACTED[users], N=3, items=[5], filter_items=[5])
    assert (nothing_left[0] == -1).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "longdouble"])
def test_what_was_met_in_every_type(dtype: str) -> None:
    model, interacted = fitted(SCORES), INTERACTED.astype(dtype)
    check_interactions(interacted)  # what can be fitted can be asked about
    target = model.recommend(np.arange(7), INTERACTED, N=5)
    for found, expected in zip(model.recommend(np.arange(7), interacted, N=5), target, strict=True):
        assert_array_equal(found, expected)


def test_what_was_met_must_be_numbers() -> None:
    with pytest.raises(TypeError, match="user_items must hold real numbers, got dtype <U"):
        fitted(SCORES).recommend(0, [["a"] * 12])


def test_large_answers_for_no_reason() -> None:
    model = fitted(SCORES)
    with pytest.raises(ValueError, match=r"N = 2147483647 makes an answer of 32.0 GiB, and there are 12 items; N = 12"):
        model.recommend([0, 1], INTERACTED[:2], N=2**31 - 1)
    assert model.recommend([0, 1], INTERACTED[:2], N=10_000)[0].shape == (2, 10_000)


def test_nothing_is_left_out_unless_asked() -> None:
    ids, _ = fitted(SCORES).recommend(np.arange(7), N=12, filter_already_liked_items=False)
    assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(12), (7, 1)))


def test_zeros_are_not_met() -> None:
    model = fitted([[3, 2, 1]])
    stored = csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert model.recommend(0, stored)[0].tolist()[:3] == [0, 2, -1]
    assert stored.nnz == 2


def test_items_that_cannot_be_reached_are_not_recommended() -> None:
    ids, scores = fitted([[-np.inf, -2.0, -np.inf]]).recommend(0, N=2, filter_already_liked_items=False)
    assert ids.tolist() == [1, -1]
    assert scores.tolist() == [-2, -np.inf]


def test_bad_questions() -> None:
    model = fitted(SCORES)
    interacted = csr_array(INTERACTED)
    with pytest.raises(ValueError, match=r"user_items is needed .* user_items=train\[userid\]"):
        model.recommend([0])
    with pytest.raises(
        ValueError, match=r"each of the 2 users .* the 12 items, got shape \(7, 12\); pass train\[userid\]"
    ):
        model.recommend([0, 1], interacted)
    with pytest.raises(ValueError, match=r"got shape \(1, 11\)"):
        model.recommend(0, interacted[[0], :11])
    with pytest.raises(ValueError, match=r"got shape \(12,\)"):
        model.recommend([0, 1], INTERACTED[0])
    for users in ([0, 7], [0, -1]):
        with pytest.raises(IndexError, match=r"userid\[1\] = (7|-1) is not a user: .* users 0 to 6"):
            model.recommend(users, interacted[:2])
        with pytest.raises(IndexError, match=r"not a user"):
            model.scores(users)
    with pytest.raises(IndexError, match=r"items\[0\] = 12 is not an item: .* items 0 to 11"):
        model.scores([0], [12])
    with pytest.raises(IndexError, match=r"filter_items\[0\] = -1"):
        model.recommend(0, INTERACTED[0], filter_items=[-1])
    with pytest.raises(TypeError, match=r"userid must hold integers \(user ids\)"):
        model.recommend([0.5], INTERACTED[0])
    with pytest.raises(TypeError, match="userid must hold integers"):
        model.scores(["alice"])
    with pytest.raises(ValueError, match="userid must be one-dimensional"):
        model.scores([[0]])
    for n in (0, -1):
        with pytest.raises(ValueError, match="N must be between 1"):
            model.recommend(0, INTERACTED[0], N=n)
    with pytest.raises(TypeError, match="N must be an integer"):
        model.recommend(0, INTERACTED[0], N=2.5)  # type: ignore[arg-type]


def test_nan_is_no_score() -> None:
    table = SCORES.copy()
    table[3, 5] = np.nan
    with pytest.raises(ValueError, match="nan as the score of user 3 for item 5"):
        fitted(table).recommend([1, 3], INTERACTED[[1, 3]])
