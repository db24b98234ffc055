"""From interactions to a product: each part against plain numpy, and the whole by what it promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse import random as random_array

from prodige import GraphRecommender, ProductGraph, _core
from prodige.graph import container
from prodige.graph.container import FileFormatError
from prodige.recommendation.balance import Balanced, balance
from prodige.recommendation.codes import Coding
from prodige.recommendation.plan import Budget, Plan, doubled, group_directions, make_plan, rates
from prodige.recommendation.saving import pack_interactions, unpack_interactions
from prodige.recommendation.sides import Side, Sides
from prodige.recommendation.teacher import TeacherSettings, fit_teacher, solve_side
from strategies import crowds


def weighted(seed: int, n_rows: int = 23, n_partners: int = 17) -> csr_array:
    return csr_array(random_array(n_rows, n_partners, 0.3, format="csr", rng=seed, dtype=np.float32))


# -- the core --------------------------------------------------------------------------------------------------------


def forms(rows: csr_array, vectors: Any, every: Any, targets: Any, extra: Any) -> list[tuple[Any, Any]]:
    """The matrix and the right-hand side of each row."""
    found = []
    for r in range(rows.shape[0]):
        place = slice(rows.indptr[r], rows.indptr[r + 1])
        met, weight = vectors[rows.indices[place]].astype(float), rows.data[place].astype(float)
        found.append((every + (met.T * weight) @ met, extra[r] + (met.T * weight) @ targets[place]))
    return found


def problem(seed: int, size: int = 16) -> tuple[Any, ...]:
    rng, rows = np.random.default_rng(seed), weighted(seed)
    vectors, extra = (rng.normal(size=(n, size)).astype(np.float32) for n in (rows.shape[1], rows.shape[0]))
    every = (0.1 * vectors.T @ vectors).astype(np.float32)
    return rows, vectors, every, rng.normal(size=rows.nnz).astype(np.float32), extra


@given(seed=st.integers(0, 2**31 - 1), size=st.sampled_from([8, 16, 40]))
@settings(max_examples=30, deadline=None)
def test_rows_are_solved_as_numpy_does(seed: int, size: int) -> None:
    rows, vectors, every, targets, extra = problem(seed, size)
    ridge = np.random.default_rng(seed).uniform(0.2, 1, rows.shape[0]).astype(np.float32)
    fit = Side.of(rows).fit
    found = fit.solve(vectors, every, targets, ridge, extra, 1)
    for row, (matrix, right) in enumerate(forms(rows, vectors, every, targets, extra)):
        truth = np.linalg.solve(matrix + ridge[row] * np.eye(size), right)
        np.testing.assert_allclose(found[row], truth, rtol=2e-3, atol=2e-3)
    assert fit.solve(vectors, every, targets, ridge, extra, 3).tobytes() == found.tobytes()


@given(seed=st.integers(0, 2**31 - 1), has_prices=st.booleans())
@settings(max_examples=15, deadline=None)
def test_words_are_the_best_of_all(seed: int, has_prices: bool) -> None:
    rows, vectors, every, targets, extra = problem(seed)
    rng = np.random.default_rng(seed)
    books = [rng.normal(size=shape).astype(np.float32) for shape in ((7, 5), (17, 3), (2, 8))]
    codes = np.stack([rng.integers(0, len(book), rows.shape[0]) for book in books], axis=1).astype(np.uint16)
    sizes, counts = (np.array([book.shape[axis] for book in books], np.int32) for axis in (1, 0))
    words = np.concatenate([book.ravel() for book in books])
    prices = [rng.gamma(1.0, 3.0 * has_prices, len(book)).astype(np.float32) for book in books]
    fit = Side.of(rows).fit
    given_prices = np.concatenate(prices) if has_prices else None
    arguments = (vectors, every, targets, None, extra, sizes, counts, words, given_prices, codes, 2, True)
    found, loss, matrices, rights = fit.choose_words(*arguments, 1)
    ends = np.cumsum([0, *sizes])
    total, sums = 0.0, [(np.zeros((len(b), b.shape[1], b.shape[1])), np.zeros(b.shape)) for b in books]
    for row, (matrix, right) in enumerate(forms(rows, vectors, every, targets, extra)):

        def error(code: Any, matrix: Any = matrix, right: Any = right) -> float:
            x = np.concatenate([book[word] for book, word in zip(books, code, strict=True)])
            return float(x @ matrix @ x - 2 * right @ x)

        def cost(code: Any, error: Any = error) -> float:
            return float(error(code) + sum(price[word] for price, word in zip(prices, code, strict=True)))

        code = codes[row].astype(int).tolist()
        for _ in range(2):
            for m, book in enumerate(books):
                code[m] = int(np.argmin([cost([*code[:m], word, *code[m + 1 :]]) for word in range(len(book))]))
        assert cost(found[row]) == pytest.approx(cost(code), rel=1e-4, abs=1e-3)
        total += error(found[row])
        x = np.concatenate([book[word] for book, word in zip(books, found[row], strict=True)])
        for m in range(3):
            part = slice(ends[m], ends[m + 1])
            sums[m][0][found[row, m]] += matrix[part, part]
            sums[m][1][found[row, m]] += matrix[part, part] @ x[part] - (matrix @ x - right)[part]
    assert loss == pytest.approx(total, rel=1e-4, abs=1e-2)
    np.testing.assert_allclose(matrices, np.concatenate([a.ravel() for a, _ in sums]), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(rights, np.concatenate([b.ravel() for _, b in sums]), rtol=1e-3, atol=1e-2)
    again = fit.choose_words(*arguments, 3)
    assert found.tobytes() == again[0].tobytes()
    assert (matrices.tobytes(), rights.tobytes()) == (again[2].tobytes(), again[3].tobytes())


def test_what_would_crash_is_refused() -> None:
    offsets, partners, weights = np.array([0, 1], np.int64), np.array([0], np.int32), np.ones(1, np.float32)
    with pytest.raises(IndexError, match="is not a vertex"):
        _core.RowFit(offsets, np.array([3], np.int32), weights, 3)
    with pytest.raises(ValueError, match="do not cut the interactions"):
        _core.RowFit(np.array([0, 2], np.int64), partners, weights, 3)
    fit = _core.RowFit(offsets, partners, weights, 1)
    with pytest.raises(ValueError, match="multiple of 8"):
        fit.solve(np.ones((1, 5), np.float32), np.ones((5, 5), np.float32), None, None, None, 1)
    with pytest.raises(ValueError, match="expected"):
        fit.solve(np.ones((1, 8), np.float32), np.ones((5, 5), np.float32), None, None, None, 1)
    with pytest.raises(ValueError, match="n is 0"):
        _core.find_best(np.ones((1, 8), np.float32), 0, None, None, 1)


def test_the_best_without_some() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (20, 300)).astype(np.float32)
    left_out = csr_array(rng.random(scores.shape) < 0.2)
    truth = np.where(left_out.toarray(), -np.inf, scores)
    columns, values = _core.find_best(
        scores, 12, left_out.indptr.astype(np.int64), left_out.indices.astype(np.int32), 2
    )
    order = np.argsort(-truth, axis=1, kind="stable")[:, :12]
    np.testing.assert_array_equal(columns, order)
    np.testing.assert_array_equal(values, np.take_along_axis(truth, order, axis=1))


# -- parts -----------------------------------------------------------------------------------------------------------


def test_the_teacher_minimises_its_objective() -> None:
    rows, settings_ = weighted(3), TeacherSettings(8, alpha=0.05, penalty=0.1)
    sides = Sides.of(rows)
    items = np.random.default_rng(0).normal(size=(17, 8)).astype(np.float32)
    users = solve_side(sides.users, items, settings_, 1)
    weights, n_items = rows.toarray(), rows.shape[1]

    def objective(x: Any) -> float:
        scores = x @ items.T
        ridge = settings_.penalty * (weights.sum(1) + settings_.alpha * n_items) @ np.square(x).sum(1)
        return float((weights * (scores - 1) ** 2).sum() + settings_.alpha * np.square(scores).sum() + ridge)

    least, rng = objective(users.astype(float)), np.random.default_rng(1)
    for _ in range(20):
        assert objective(users + 0.01 * rng.normal(size=users.shape)) > least


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40), st.integers(1, 12), st.floats(1, 9))
def test_groups_share_the_rates(values: list[float], n_groups: int, bits: float) -> None:
    spectrum = np.sort(np.array(values))[::-1]
    deserved = rates(spectrum, n_groups * bits)
    assert deserved.sum() == pytest.approx(n_groups * bits)
    assert (np.diff(deserved) <= 1e-9).all()
    for grouping in ("consecutive", "dealt"):
        groups = group_directions(spectrum, n_groups, bits, grouping)
        assert sorted(np.concatenate(groups).tolist()) == np.flatnonzero(deserved > 0).tolist()
        assert all(group.size for group in groups)


@pytest.mark.parametrize("store_users", [True, False])
@pytest.mark.parametrize(("bits", "numbers"), [(400, None), (900, None), (None, 4), (None, 9)])
def test_files_are_within_the_budget(bits: float | None, numbers: float | None, store_users: bool) -> None:
    model = GraphRecommender(bits, numbers, store_users=store_users, random_state=0, n_jobs=1).fit(crowds(150, 60))
    assert model.bits_per_item_ <= (bits or np.inf)
    assert model.numbers_per_item_ <= (numbers or np.inf)
    budget = Budget(bits, numbers, 150, 60, store_users)
    plan = make_plan(budget, 0.8 ** np.arange(16.0), 16, 16, "dealt")
    assert plan is None or budget.cost(plan) <= budget.total


@given(bits=st.floats(20, 200), is_wide=st.booleans())
@settings(max_examples=30, deadline=None)
def test_what_is_left_of_a_budget_buys_words(bits: float, is_wide: bool) -> None:
    budget = Budget(bits, None, 3000, 1000)
    plan = make_plan(budget, 0.8 ** np.arange(16.0), 16, 32, "consecutive", is_wide)
    assert plan is not None
    assert budget.cost(plan) <= budget.total
    n_doubled = plan.user_words.count(32)
    assert plan.user_words == (32,) * n_doubled + (16,) * (plan.n_factors - n_doubled)
    assert plan.item_words == tuple(2 * n for n in plan.user_words)
    if n_doubled < plan.n_factors:
        one_more = replace(
            plan,
            user_words=doubled(plan.user_words, n_doubled + 1, 32),
            item_words=doubled(plan.item_words, n_doubled + 1, 64),
        )
        assert budget.cost(one_more) > budget.total


def test_a_wide_plan_has_all_directions() -> None:
    budget, spectrum = Budget(20, None, 3000, 1000), 0.5 ** np.arange(16.0)
    narrow, wide = (make_plan(budget, spectrum, 16, 16, "consecutive", is_wide) for is_wide in (False, True))
    assert narrow is not None
    assert wide is not None
    assert narrow.n_directions < 16
    assert sorted(wide.columns) == list(range(16))


def test_words_say_what_directions_without_words_would() -> None:
    """Codes are fitted to all that the teacher knows: scores of a direction that is left out move those that stay."""
    rng = np.random.default_rng(0)
    rows = csr_array((rng.random((200, 60)) < 0.2).astype(np.float32))
    sides = Sides.of(rows)
    taught = balance(fit_teacher(sides, TeacherSettings(rank=16), 5, np.random.RandomState(0), 1))
    kept = Plan((tuple(range(4)), tuple(range(4, 8))), (16, 16), (16, 16))

    def error(known: Balanced) -> float:
        coding = Coding(sides, known, kept, 0.015, True, np.random.RandomState(0), 1)
        for _ in range(4):
            coding.alternate()
        found = coding.finish()
        assert found is not None
        users, items = found
        assert users is not None
        scores = users.vectors() @ items.vectors().T - taught.users @ taught.items.T
        return float((rows.multiply(scores**2) + csr_array(0.015 * scores**2)).sum())

    assert error(taught) < error(taught.take(np.arange(8)))


# -- the whole -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def train() -> csr_array:
    return crowds(200, 40)


@pytest.fixture(scope="module", params=[True, False])
def model(request: pytest.FixtureRequest, train: csr_array) -> GraphRecommender:
    names = [f"item {x}" for x in range(40)]
    return GraphRecommender(store_users=request.param, random_state=0, n_jobs=1).fit(train, item_labels=names)


def test_strangers_are_served_like_others(model: GraphRecommender, train: csr_array) -> None:
    users = np.arange(60)
    for ids in (
        model.recommend(users, N=5)[0],
        model.recommend(users, recalculate_user=True, N=5)[0],
        model.recommend(user_items=train[users], N=5)[0],
    ):
        assert (ids % 2 == users[:, None] % 2).mean() > 0.95
    one = model.recommend(user_items=train[[7]].toarray()[0], N=5)
    assert one[0].tolist() == model.recommend(user_items=train[[7]], N=5)[0][0].tolist()
    with pytest.raises(ValueError, match="recommend needs userid, or user_items"):
        model.recommend()


def test_answers_do_not_depend_on_who_else_is_asked(model: GraphRecommender) -> None:
    many = model.scores(np.arange(150))
    for user in (0, 63, 64, 149):
        assert (model.scores(user) == many[user]).all()


def test_models_without_users() -> None:
    train = crowds(200, 40)
    model = GraphRecommender(store_users=False, keep_interactions=False, random_state=0, n_jobs=1).fit(train)
    assert model.graph_.n_items == 40
    with pytest.raises(ValueError, match="users are not stored and interactions are not kept"):
        model.scores([0])
    with pytest.raises(ValueError, match="similar_users needs users in the graph"):
        model.similar_users(0)
    with pytest.raises(ValueError, match="partial_fit_items needs users in the graph"):
        model.partial_fit_items([40], train.T[[0]])
    assert (model.recommend([4], train[[4]], N=5)[0] % 2 == 0).all()
    assert (model.similar_items([3], N=8)[0] % 2 == 1).mean() > 0.8


def test_new_items_join_their_crowd(train: csr_array) -> None:
    model = GraphRecommender(random_state=0, n_jobs=1).fit(train)
    before = model.distances(np.arange(200))
    fans = np.zeros((2, 200), np.float32)
    fans[0, np.arange(0, 200, 2)] = 1  # the even crowd
    model.partial_fit_items([40, 42], fans)
    assert model.n_items_ == 43
    np.testing.assert_allclose(model.distances(np.arange(200))[:, :40], before, rtol=1e-5)
    found = model.distances(np.arange(200))[:, 40]
    assert found[::2].mean() < found[1::2].mean()
    assert model.interactions_ is not None
    assert model.interactions_[[0], [40]] == 1
    assert 40 not in model.recommend(0, N=20)[0]
    # What nobody met is recommended to next to nobody: by chance it would be in 14 of 100 lists.
    assert (model.recommend(np.arange(200), N=3)[0] >= 41).any(axis=1).mean() < 0.05


def test_weights_count() -> None:
    """Who met both crowds' items equally often is drawn to those that count more."""
    train = crowds(200, 40).toarray()
    train[0] = 0
    train[0, :12] = np.where(np.arange(12) % 2 == 0, 9.0, 0.5)
    one = GraphRecommender(random_state=0, n_jobs=1).fit(train)
    train[0, :12] = np.where(np.arange(12) % 2 == 1, 9.0, 0.5)
    other = GraphRecommender(random_state=0, n_jobs=1).fit(train)
    assert (one.recommend(0, N=6)[0] % 2 == 0).mean() > (other.recommend(0, N=6)[0] % 2 == 0).mean()


def test_explanations(model: GraphRecommender, train: csr_array) -> None:
    met = set(train.indices[train.indptr[4] : train.indptr[5]].tolist())
    item = int(model.recommend(4, N=1)[0][0])
    found = model.explain(4, item)
    assert found.score == pytest.approx(float(model.scores(4, [item])[0, 0]), rel=1e-5)
    assert {name for name, _ in found.items} == {f"item {x}" for x in met}
    assert [share for _, share in found.items] == sorted((share for _, share in found.items), reverse=True)
    assert sum(share for _, share in found.factors) > 0
    assert isinstance(model.graph_, ProductGraph)
    assert len(found.factors) == model.graph_.n_factors
    with pytest.raises(IndexError, match="is not an item"):
        model.explain(4, 40)


def test_saved_with_interactions(model: GraphRecommender, train: csr_array, tmp_path: Path) -> None:
    model.save(tmp_path / "m.prodige")
    loaded = GraphRecommender.load(tmp_path / "m.prodige", n_jobs=1)
    assert loaded.graph_ == model.graph_
    assert loaded.store_users == model.store_users
    np.testing.assert_array_equal(loaded.interactions_.toarray(), train.toarray() > 0)  # type: ignore[union-attr]
    np.testing.assert_array_equal(loaded.recommend([3, 4])[0], model.recommend([3, 4])[0])
    contents = container.read(tmp_path / "m.prodige")
    lies: list[dict[str, Any]] = [
        {"n_interactions": 3},
        {"n_interactions": -1},
        {"constants": None},
        {"constants": contents.content["constants"] | {"scale": 0.0}},
        {"constants": contents.content["constants"] | {"alpha": "x"}},
        {"edges": "normal"},
        {"n_users": 0},
        {"store_users": 3},
        {"store_users": not model.store_users},
    ]
    for lie in lies:
        container.write(tmp_path / "lie", "recommender", contents.content | lie, contents.arrays)
        with pytest.raises(FileFormatError, match="do not fit together"):
            GraphRecommender.load(tmp_path / "lie")


@given(seed=st.integers(0, 2**31 - 1), shape=st.tuples(st.integers(1, 9), st.integers(1, 300)), share=st.floats(0, 1))
def test_interactions_come_back(seed: int, shape: tuple[int, int], share: float) -> None:
    table = csr_array((np.random.default_rng(seed).random(shape) < share).astype(np.float32))
    arrays = pack_interactions(table)
    found = unpack_interactions({"n_interactions": table.nnz}, arrays, *shape)
    np.testing.assert_array_equal(found.toarray(), table.toarray())


def test_a_matrix_that_looks_the_wrong_way_round() -> None:
    wide = csr_array(np.random.default_rng(0).random((12, 1500)) < 0.1)
    with pytest.warns(UserWarning, match=r"has 12 rows and 1500 columns; .* Pass user_items\.T"):
        GraphRecommender(random_state=0, n_jobs=1, max_time=0.2).fit(wide)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2), (3, 200)])
def test_small_tables(shape: tuple[int, int]) -> None:
    model = GraphRecommender(random_state=0, n_jobs=1).fit(np.ones(shape))
    assert np.isfinite(model.distances(np.arange(shape[0]))).all()
    assert model.recommend(0)[0].tolist() == [-1] * 10


def test_huge_counts() -> None:
    table = crowds(60, 20).toarray()
    table[3] *= 1e30
    model = GraphRecommender(random_state=0, n_jobs=1).fit(table)
    assert np.isfinite(model.distances(np.arange(60))).all()
