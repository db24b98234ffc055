"""Recommenders at equal bits: each method's ways to spend a budget, and what is made of interactions in such a way.

Vectors of users and items are turned to their principal directions, so that the first ones are the best to keep, and
rounded or coded from there. Tables of items by items lose all but their largest weights. Settings of a method are the
best of the grids below; they, and then the split of bits, are chosen on one held-out training item a user.

Where a model holds no users, only items count: they are what bits are divided by, and users' interactions are given
when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige import baselines
from prodige.baselines.pruning import pruned, table_bits
from prodige.baselines.recommending import FactorModel
from prodige.baselines.rounding import rounded, stored_bits
from prodige.recommendation.interactions import best
from prodige.recommendation.lists import Mean, evaluate_lists
from prodige.recommendation.ranking import evaluate_ranking, sample_negatives, split_leave_one_out
from prodige.reproduce.quantisers import Quantiser

Floats: TypeAlias = NDArray[np.float32]
Split: TypeAlias = dict[str, Any]

# Lengths of vectors to round or code, of which leading directions are kept.
RANKS = (8, 16, 32, 64, 128)
# The length that settings are chosen at.
SETTINGS_RANK = 32
COORDINATE_BITS = tuple(range(2, 9))
WORD_BITS = (4, 6, 8)
WEIGHT_BITS = (1, 2, 4)
# Weights of an item that are looked at: budgets leave room for dozens.
MOST_WEIGHTS = 200

GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "ials": {"alpha": (0.003, 0.01, 0.03, 0.1, 0.3), "penalty": (0.003, 0.01, 0.03, 0.1)},
    "als": {"alpha": (5.0, 20.0, 80.0, 320.0), "regularization": (1.0, 10.0, 100.0)},
    "svd": {"weight": (0.0, 0.5, 1.0)},
    "ease": {"regularization": (50.0, 200.0, 1000.0, 5000.0)},
    "item-knn": {"shrinkage": (0.0, 10.0, 100.0)},
}

VECTORS = ("ials", "als", "svd")

# What is shown, and the mean of which settings and splits are chosen by.
FIGURES = ("HR@5", "HR@10", "NDCG@10", "Recall@20")


class Scores(Protocol):
    """What a split makes of interactions."""

    def scores(self, users: NDArray[np.int64], items: None = None, /) -> Floats:
        """Return scores of users for all items."""


@dataclass(frozen=True)
class Products:
    """Scores as products of vectors."""

    users: Floats
    items: Floats

    def scores(self, users: NDArray[np.int64], items: None = None, /) -> Floats:
        """Return scores of users for all items."""
        return np.asarray(self.users[users] @ self.items.T)


@dataclass(frozen=True)
class Weighted:
    """Scores as sums of weights: a row has those of other items that speak for one."""

    user_items: csr_array
    weights: csr_array

    def scores(self, users: NDArray[np.int64], items: None = None, /) -> Floats:
        """Return scores of users for all items."""
        return np.asarray((self.user_items[users] @ self.weights.T).toarray(), dtype=np.float32)


@dataclass(frozen=True)
class Answer:
    """A model in some split, and its size for each user and item, or for each item where it holds no users."""

    model: Scores
    bits_per_item: float


# -- data ------------------------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """Interactions to learn from and items to look for; vectors that were fitted once are used again.

    Parameters
    ----------
    train : csr_array of float32
    held_out : ndarray of int64, shape [U]
    negatives : ndarray of int64, shape [U, n]
    n_jobs : int, optional
    """

    train: csr_array
    held_out: NDArray[np.int64]
    negatives: NDArray[np.int64]
    n_jobs: int | None = None
    _known: dict[Any, Any] = field(default_factory=dict)

    def validation(self) -> Stage:
        """Return a stage made of the training data alone, to choose by."""
        train, held_out = split_leave_one_out(self.train, random_state=0)
        negatives = sample_negatives(self.train, held_out, self.negatives.shape[1], random_state=0)
        return Stage(train, held_out, negatives, self.n_jobs)

    def judge(self, model: Scores) -> dict[str, float]:
        """Return the figures of a model, each with its standard error by users."""
        report = evaluate_ranking(model, self.train, self.held_out, self.negatives, k=(5, 10))
        assert report.sampled is not None
        found: dict[str, float] = {}
        for k, share in report.sampled.hit_ratio.items():
            error = float(np.sqrt(share * (1 - share) / max(report.n_users - 1, 1)))
            found |= {f"HR@{k}": share, f"HR@{k} error": error}
        asked = np.flatnonzero(self.held_out >= 0)
        pairs = np.ones(asked.size, np.float32), (asked, self.held_out[asked])
        lists = evaluate_lists(model, self.train, csr_array(pairs, shape=self.train.shape), [20], [10])
        means: dict[str, Mean] = {"NDCG@10": lists.ndcg[10], "Recall@20": lists.recall[20]}
        for name, mean in means.items():
            found |= {name: mean.value, f"{name} error": mean.error}
        return found

    def quality(self, model: Scores) -> float:
        """Return what settings and splits are chosen by."""
        figures = self.judge(model)
        return float(np.mean([figures[name] for name in FIGURES]))

    def model(self, kind: str, seed: int, settings: Split) -> Any:
        """Return a fitted baseline."""
        key = kind, seed, *sorted(settings.items())
        if key not in self._known:
            self._known[key] = make(kind, seed, self.n_jobs, settings).fit(self.train)
        return self._known[key]

    def directions(self, kind: str, rank: int, seed: int, settings: Split) -> tuple[Floats, Floats]:
        """Return vectors of users and items in their principal directions."""
        key = "directions", kind, rank, seed
        if key not in self._known:
            self._known[key] = principal(make(kind, seed, self.n_jobs, settings | {"n_factors": rank}).fit(self.train))
        found: tuple[Floats, Floats] = self._known[key]
        return found


def principal(model: FactorModel) -> tuple[Floats, Floats]:
    """Return both sides of a model in the singular directions of its scores, each with the root of the spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.baselines import SVD
    >>> from prodige.reproduce.recommenders import principal
    >>> model = SVD(2, random_state=0).fit(np.kron(np.eye(2), np.ones((3, 4))) + np.eye(6, 8))
    >>> users, items = principal(model)
    >>> np.allclose(users @ items.T, model.scores(np.arange(6)), atol=1e-4)
    True
    >>> np.allclose(np.linalg.norm(users, axis=0), np.linalg.norm(items, axis=0))
    True
    """
    basis_users, root_users = np.linalg.qr(model.user_factors_.astype(np.float64))
    basis_items, root_items = np.linalg.qr(model.item_factors_.astype(np.float64))
    left, spectrum, right = np.linalg.svd(root_users @ root_items.T)
    scale = np.sqrt(spectrum)
    users, items = basis_users @ (left[:, : scale.size] * scale), basis_items @ (right[: scale.size].T * scale)
    return users.astype(np.float32), items.astype(np.float32)


def make(kind: str, seed: int, n_jobs: int | None, settings: Split) -> Any:
    """Return a baseline to be fitted."""
    if kind == "ials":
        return baselines.IALS(**settings, random_state=seed, n_jobs=n_jobs)
    if kind == "als":
        return baselines.ALS(**settings, random_state=seed, n_jobs=n_jobs)
    if kind == "svd":
        return baselines.SVD(**settings, random_state=seed)
    if kind == "item-knn":
        return baselines.ItemKNN(MOST_WEIGHTS, **settings)
    return baselines.EASE(**settings)


@dataclass
class Bench:
    """The data, what is held out of them to choose by, and the settings that were chosen."""

    whole: Stage
    held: Stage
    settings: dict[str, Split] = field(default_factory=dict)

    @classmethod
    def of(cls, whole: Stage) -> Bench:
        """Return the bench of some data."""
        return cls(whole, whole.validation())

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        n_users, n_items = self.whole.train.shape
        return int(n_users), int(n_items)

    def chosen(self, kind: str) -> Split:
        """Return the best settings of a kind, found once."""
        if kind not in self.settings:
            length = {"n_factors": min(SETTINGS_RANK, self.ranks()[-1])} if kind in VECTORS else {}
            names = GRIDS[kind]
            tried = [dict(zip(names, values, strict=True)) for values in product(*names.values())]
            models = (make(kind, 0, self.held.n_jobs, one | length).fit(self.held.train) for one in tried)
            self.settings[kind] = tried[int(np.argmax([self.held.quality(model) for model in models]))]
        return self.settings[kind]

    def ranks(self) -> list[int]:
        """Return the lengths of vectors that such a table allows."""
        return [rank for rank in RANKS if rank < min(self.shape)] or [1]


# -- methods ---------------------------------------------------------------------------------------------------------


class Method(Protocol):
    """A way to recommend, with its ways to spend a budget."""

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield what fits into so many bits."""

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return what one of these makes of a stage."""


@dataclass(frozen=True)
class Ours:
    """The graph, which chooses its settings by itself."""

    store_users: bool

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield the budget."""
        yield {"bits": budget}

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return a fitted graph."""
        from prodige.recommendation.recommender import GraphRecommender

        model = GraphRecommender(
            bits_per_item=split["bits"], store_users=self.store_users, random_state=seed, n_jobs=stage.n_jobs
        ).fit(stage.train)
        return Answer(model, model.bits_per_item_)


@dataclass(frozen=True)
class Rounded:
    """Leading directions of vectors, rounded: as many bits for each, and the levels of each on either side."""

    kind: str

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield bits of a coordinate, coordinates, and lengths of the vectors that they are the first of."""
        for bits in COORDINATE_BITS:
            most = int(budget // self.size(bench, bits))
            ranks = bench.ranks()
            # Vectors much longer than what is kept of them are no better, and shorter ones leave bits over.
            near = [rank for rank in ranks if rank <= 4 * most and most <= 2 * rank]
            for rank in near or ranks[-1:] if most else []:
                yield {"bits": bits, "coordinates": min(most, rank), "rank": rank}

    @staticmethod
    def size(bench: Bench, bits: int) -> float:
        """Return the bits of a coordinate for each user and item."""
        n_users, n_items = bench.shape
        return (stored_bits(bits, n_users) * n_users + stored_bits(bits, n_items) * n_items) / (n_users + n_items)

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return rounded vectors."""
        bits, kept = split["bits"], split["coordinates"]
        sides = stage.directions(self.kind, split["rank"], seed, bench.chosen(self.kind))
        users, items = (
            np.stack([rounded(column.astype(np.float64), bits) for column in side[:, :kept].T], axis=1).astype(
                np.float32
            )
            for side in sides
        )
        return Answer(Products(users, items), kept * self.size(bench, bits))


@dataclass(frozen=True)
class Coded:
    """Leading directions of vectors as codes of product quantisation, with the codebooks of either side in bytes."""

    kind: str

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield codes, bits of a code, coordinates."""
        least = min(bench.shape)
        for bits, width in product(WORD_BITS, bench.ranks()):
            if 2**bits > least:
                continue
            room = [n for n in range(1, width + 1) if self.size(bench, width, n, bits) <= budget]
            # As many codes as there is room for, and as many as use every coordinate.
            for n_codes in sorted({*room[-1:], *[n for n in room if width % n == 0][-1:]}):
                yield {"codes": n_codes, "bits": bits, "coordinates": width // n_codes * n_codes, "rank": width}

    @staticmethod
    def size(bench: Bench, width: int, n_codes: int, bits: int) -> float:
        """Return the bits of codes and of the books of both sides for each user and item."""
        books = Quantiser("pq", np.empty((0, width), np.float32)).book_bits(width, n_codes, bits)
        return n_codes * bits + 2 * books / sum(bench.shape)

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return what codes say the vectors are."""
        sides = stage.directions(self.kind, split["rank"], seed, bench.chosen(self.kind))
        width, n_codes, bits = split["coordinates"], split["codes"], split["bits"]
        users, items = (Quantiser("pq", side, seed).code(width, n_codes, bits, in_bytes=True).words for side in sides)
        return Answer(Products(users, items), self.size(bench, width, n_codes, bits))


@dataclass(frozen=True)
class Pruned:
    """The largest weights of a table of items by items."""

    kind: str

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield bits of a weight, and whether rows are equally long."""
        for bits, by_row in product(WEIGHT_BITS, (False, True)):
            yield {"bits": bits, "by_row": by_row, "budget": budget}

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return a table that fits into the budget for each item."""
        n_items = bench.shape[1]
        model = stage.model(self.kind, seed, bench.chosen(self.kind))
        table = largest(model.weights_.T) if self.kind == "ease" else model.similarity_
        kept = pruned(table, split["budget"] * n_items, split["bits"], split["by_row"])
        return Answer(Weighted(stage.train, kept), table_bits(kept, split["bits"]) / n_items)


def largest(weights: Floats) -> csr_array:
    """Return the largest weights of each row, many more than a budget leaves room for.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.reproduce.recommenders import largest
    >>> largest(np.array([[0.0, -2.0], [1.0, 0.0]], np.float32)).toarray()
    array([[ 0., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    columns, sizes = best(np.ascontiguousarray(np.abs(weights)), min(MOST_WEIGHTS, weights.shape[1]))
    row, place = np.nonzero(sizes > 0)
    column = columns[row, place]
    return csr_array((weights[row, column], (row, column)), shape=weights.shape)


@dataclass(frozen=True)
class Popular:
    """How many users interacted with an item, as a float."""

    def splits(self, bench: Bench, budget: int) -> Iterator[Split]:
        """Yield the only way."""
        yield {}

    def answer(self, bench: Bench, stage: Stage, split: Split, seed: int) -> Answer:
        """Return the counts."""
        model = baselines.Popularity().fit(stage.train)
        return Answer(model, 32 * model.numbers_per_item)
