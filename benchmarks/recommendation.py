"""How many users a second one core recommends to, beside the ALS of implicit with as many items.

Interactions are random, within circles of users and items. The graph is fitted for a given time, as how good it is does
not matter here; ALS of implicit has as many factors as the graph has numbers. Both are asked for the best N items that
users have not met, in one process and with one thread. "ours, ALS" are the same factors asked through our own base
class: what choosing the best N costs. Ratios are to implicit, so more is better.

    python benchmarks/recommendation.py [--users 20000] [--items 10000] [--n 10] [--budget 4] [--seconds 20] [--json]

Seconds are those of the processor: what else the machine does counts little. With --fits it is fits that are timed, in
64 bits and with one thread, settings chosen on the way: of 1,000 to 100,000 items and as many users with 10
interactions each, with the exponent of their growth; and of 3,000 users with 34,000 items. --large is the fit of a
million users, 100,000 items and 30 million interactions.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array, csr_matrix
from threadpoolctl import threadpool_limits

from prodige.baselines import ALS
from prodige.provenance import provenance
from prodige.recommendation.interactions import Recommender, check_interactions
from prodige.threads import torch_threads

REPEATS = 5


def circles(n_users: int, n_items: int, n_circles: int = 50, per_user: int = 25, seed: int = 0) -> csr_array:
    """Return interactions: a user meets items of two circles, now and then another."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, n_circles, (n_users, 2))
    chosen = np.take_along_axis(own, rng.integers(0, 2, (n_users, per_user)), axis=1)
    size = -(-n_items // n_circles)
    items = (chosen * size + (size * rng.random(chosen.shape) ** 2).astype(int)) % n_items
    items = np.where(rng.random(items.shape) < 0.1, rng.integers(0, n_items, items.shape), items)
    rows = np.repeat(np.arange(n_users), per_user)
    return check_interactions(csr_array((np.ones(rows.size), (rows, items.ravel())), shape=(n_users, n_items)))


def users_per_second(ask: Callable[[Any], Any], users: Any) -> float:
    """Return the best of a few tries: what else the machine does only makes it slower."""
    ask(users[:100])
    best = np.inf
    for _ in range(REPEATS):
        began = time.process_time()
        ask(users)
        best = min(best, time.process_time() - began)
    return float(len(users) / best)


def in_implicit(als: ALS) -> Any:
    """Return the same factors as a model of implicit with one thread."""
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(als.n_factors, num_threads=1)
    model.user_factors, model.item_factors = als.user_factors_, als.item_factors_
    return model


def measure(n_users: int, n_items: int, n: int, budget: int, seconds: float, n_asked: int) -> list[dict[str, Any]]:
    """Fit all models and ask them."""
    from prodige.recommendation.recommender import GraphRecommender

    user_items = circles(n_users, n_items)
    users = np.random.default_rng(1).permutation(n_users)[:n_asked]
    interacted = user_items[users]

    def ours(model: Recommender) -> Callable[[Any], Any]:
        return lambda some: model.recommend(some, interacted[: len(some)], N=n)

    with threadpool_limits(1, "blas"), torch_threads(1):
        graph = GraphRecommender(numbers_per_item=budget, max_time=seconds, random_state=0, n_jobs=1).fit(user_items)
        als = ALS(budget, random_state=0, n_jobs=1).fit(user_items)
        peer = in_implicit(als)
        rows = csr_matrix(interacted)
        rates = {
            "graph": users_per_second(ours(graph), users),
            "ours, ALS": users_per_second(ours(als), users),
            "implicit, ALS": users_per_second(lambda some: peer.recommend(some, rows[: len(some)], N=n), users),
        }
    return [
        {"model": name, "users_per_second": rate, "ratio": rate / rates["implicit, ALS"]}
        for name, rate in rates.items()
    ]


def time_fit(n_users: int, n_items: int, per_user: int) -> dict[str, Any]:
    """Fit one table in 64 bits."""
    from prodige.recommendation.recommender import GraphRecommender

    user_items = circles(n_users, n_items, per_user=per_user)
    with threadpool_limits(1, "blas"), torch_threads(1):
        began = time.process_time()
        model = GraphRecommender(bits_per_item=64, keep_interactions=False, random_state=0, n_jobs=1).fit(user_items)
        seconds = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "model": f"{n_users:,} × {n_items:,}, {user_items.nnz:,} interactions",
        "seconds": seconds,
        "bits": model.bits_per_item_,
        "gibibytes": most,
    }


def time_fits(large: bool) -> list[dict[str, Any]]:
    """Fit tables of several sizes; the exponent is that from the smallest to the largest square one."""
    if large:
        return [time_fit(1_000_000, 100_000, 30)]
    sizes = (1000, 10_000, 100_000)
    rows = [time_fit(n, n, 10) for n in sizes]
    exponent = np.log(rows[-1]["seconds"] / rows[0]["seconds"]) / np.log(sizes[-1] / sizes[0])
    rows[-1]["exponent"] = float(exponent)
    return [*rows, time_fit(3000, 34_000, 25)]


def show_fits(rows: list[dict[str, Any]]) -> None:
    """Print a table of fits."""
    table = Table(title="Fits in 64 bits, one thread")
    for place, header in enumerate(["", "seconds", "bits", "GiB", "exponent"]):
        table.add_column(header, justify="right" if place else "left")
    for row in rows:
        exponent = f"{row['exponent']:.2f}" if "exponent" in row else ""
        table.add_row(row["model"], f"{row['seconds']:.1f}", f"{row['bits']:.1f}", f"{row['gibibytes']:.1f}", exponent)
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--asked", type=int, default=5_000, help="users that are recommended to in one call")
    parser.add_argument("--n", type=int, default=10, help="items for each")
    parser.add_argument("--budget", type=int, default=4, help="numbers per user and item")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for the fit of the graph")
    parser.add_argument("--fits", action="store_true", help="time fits of tables of several sizes")
    parser.add_argument("--large", action="store_true", help="time the fit of a million users")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    if options.fits or options.large:
        fits = time_fits(options.large)
        if options.json:
            command = f"python benchmarks/recommendation.py --{'large' if options.large else 'fits'}"
            print(json.dumps({"rows": fits, **provenance(command)}))
        else:
            show_fits(fits)
        return
    rows = measure(options.users, options.items, options.n, options.budget, options.seconds, options.asked)
    if options.json:
        command = (
            f"python benchmarks/recommendation.py --users {options.users} --items {options.items} "
            f"--asked {options.asked} --n {options.n} --budget {options.budget} --seconds {options.seconds:g}"
        )
        print(json.dumps({"rows": rows, **provenance(command)}))
        return
    table = Table(title=f"The best {options.n} of {options.items:,} items, one core")
    for place, header in enumerate(["", "users a second", "× implicit"]):
        table.add_column(header, justify="right" if place else "left")
    for row in rows:
        table.add_row(row["model"], f"{row['users_per_second']:,.0f}", f"{row['ratio']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
