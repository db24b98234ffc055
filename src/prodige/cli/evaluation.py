"""``prodige recommend --evaluate``: how good recommendations are, on items held out or on those of a file.

Without a file, one item of each user with two or more is held out, and the graph never sees it. Intervals are those
that the mean over all such users is in, 19 times of 20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from prodige.cli.pairs import Pairs
    from prodige.recommendation.recommender import GraphRecommender

_N_NEGATIVES = 99


class HeldOut(NamedTuple):
    """What to look for, and what users had before; sampled others where one item of each user is held out."""

    train: csr_array
    wanted: csr_array
    items: NDArray[Any] | None = None
    negatives: NDArray[Any] | None = None


def hold_out(pairs: Pairs, seed: int) -> tuple[Pairs, HeldOut]:
    """Return pairs without one item of each user, and those items."""
    import numpy as np
    from scipy.sparse import csr_array

    from prodige.recommendation.ranking import sample_negatives, split_leave_one_out

    train, items = split_leave_one_out(pairs.user_items, random_state=seed)
    asked = np.flatnonzero(items >= 0)
    if not asked.size:
        raise ValueError("no user has two items, so none can be held out; name pairs to look for with --test")
    wanted = csr_array((np.ones(asked.size), (asked, items[asked])), shape=train.shape)
    least_new = train.shape[1] - int(np.diff(pairs.user_items.indptr).max())
    negatives = None
    if least_new >= _N_NEGATIVES:
        negatives = sample_negatives(train, items, _N_NEGATIVES, random_state=seed)
    return pairs._replace(user_items=train), HeldOut(train, wanted, items, negatives)


def of_file(model: GraphRecommender, users: list[str], items: list[str], known: csr_array, test: Pairs) -> HeldOut:
    """Return the pairs of a file that are new to a model and of users and items that it knows."""
    import numpy as np
    from scipy.sparse import coo_array, csr_array

    rows, columns = ({label: place for place, label in enumerate(labels)} for labels in (users, items))
    pairs = coo_array(test.user_items)
    row = np.array([rows.get(label, -1) for label in test.users])[pairs.row]
    column = np.array([columns.get(label, -1) for label in test.items])[pairs.col]
    kept = (row >= 0) & (column >= 0)
    wanted = csr_array((np.ones(kept.sum()), (row[kept], column[kept])), shape=(model.n_users_, model.n_items_))
    wanted = csr_array(wanted - wanted.multiply(known > 0))
    wanted.eliminate_zeros()
    if not wanted.nnz:
        raise ValueError("--test has no pair of a user and an item of the graph that the graph was not fitted to")
    return HeldOut(known, wanted)


def evaluate(model: GraphRecommender, held: HeldOut) -> dict[str, Any]:
    """Return figures by name, each with its mean over users and an interval."""
    import numpy as np

    from prodige.recommendation.lists import Mean, evaluate_lists
    from prodige.recommendation.ranking import evaluate_ranking

    lists = evaluate_lists(model, held.train, held.wanted)
    means: dict[str, Mean] = {}
    if held.items is not None and held.negatives is not None:
        sampled = evaluate_ranking(model, held.train, held.items, held.negatives).sampled
        assert sampled is not None
        for k, share in sampled.hit_ratio.items():
            hits = np.zeros(lists.n_users)
            hits[: round(share * lists.n_users)] = 1
            means[f"HR@{k} among {_N_NEGATIVES} sampled"] = Mean.of(hits)
    means |= {f"Recall@{k}": mean for k, mean in lists.recall.items()}
    means |= {f"NDCG@{k}": mean for k, mean in lists.ndcg.items()}
    figures = {name: {"mean": mean.value, "interval": bounded(mean.interval)} for name, mean in means.items()}
    return {"n_users": lists.n_users, "n_held_out": int(held.wanted.nnz), "figures": figures}


def bounded(interval: tuple[float, float]) -> list[float] | None:
    """Return an interval within 0 and 1; None where one user says nothing of others.

    Examples
    --------
    >>> from prodige.cli.evaluation import bounded
    >>> bounded((-0.1, 0.5)), bounded((float("nan"), float("nan")))
    ([0.0, 0.5], None)
    """
    low, high = interval
    return None if low != low else [max(0.0, low), min(1.0, high)]


def lines_of(evaluation: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return what is shown of an evaluation: names, means, intervals."""
    return [
        (name, f"{one['mean']:.4f}", "" if one["interval"] is None else "{:.4f} to {:.4f}".format(*one["interval"]))
        for name, one in evaluation["figures"].items()
    ]
