"""Recommendations: six groups of users with tastes of their own, found from who interacted with what.

600 users and 120 items share one graph of 64 bits a vertex. What is near a user and new to it is recommended. One
item of every user is held out beforehand; the table says how often it is among the ten nearest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array

from prodige import GraphRecommender
from prodige.baselines import SVD, Popularity

N_USERS, N_ITEMS, N_GROUPS = 600, 120, 6


def main(folder: Path = Path("demo")) -> None:
    """Draw interactions at random, hold some out, fit, compare, show the distances."""
    # A group likes a sixth of the items and those of the next group a little; popular items are chosen more often.
    random = np.random.default_rng(0)
    group, kind = np.arange(N_USERS) * N_GROUPS // N_USERS, np.arange(N_ITEMS) * N_GROUPS // N_ITEMS
    liking = np.where(group[:, None] == kind, 0.5, np.where((group[:, None] + 1) % N_GROUPS == kind, 0.15, 0.02))
    interacted = random.random((N_USERS, N_ITEMS)) < liking * random.uniform(0.4, 1, N_ITEMS)

    # One item of each user is set aside; the models never see it.
    held_out = np.array([random.choice(np.flatnonzero(row)) if row.any() else 0 for row in interacted])
    train = interacted.copy()
    train[np.arange(N_USERS), held_out] = False
    tested = np.flatnonzero(interacted[np.arange(N_USERS), held_out] & train.any(axis=1))
    train_matrix = csr_array(train.astype(np.float32))

    # The same question to all: is the item that was set aside among the ten that are recommended?
    model = GraphRecommender(bits_per_item=64, random_state=0)
    for name, recommender in {"popularity": Popularity(), "SVD": SVD(4, random_state=0), "graph": model}.items():
        recommender.fit(train_matrix)
        ids, _ = recommender.recommend(tested, train_matrix[tested], N=10)
        print(f"{name:>10}: {np.mean((ids == held_out[tested, None]).any(axis=1)):.1%} found among ten")
    print(model.graph_)

    # Left the interactions, right how near items are by the graph: it fills in what a group has not seen yet.
    figure = Figure(figsize=(8, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.imshow(train, aspect="auto", cmap="Greys", interpolation="nearest")
    left.set(title="interactions", xlabel="items", ylabel="users")
    distances = model.distances(np.arange(N_USERS))
    # Only the order of a user's items counts, so each row is compared with its own mean.
    nearness = distances.mean(axis=1, keepdims=True) - distances
    right.imshow(nearness, aspect="auto", cmap="viridis", interpolation="nearest", vmin=np.quantile(nearness, 0.02))
    right.set(title="near, by the graph", xlabel="items")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gallery-recommendations.png", dpi=110)


if __name__ == "__main__":
    main()
