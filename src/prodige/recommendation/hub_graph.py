r"""A graph of hubs for recommendation: a graph of users and items in which every user has one edge.

Users of one cluster want the same, so a user needs no more than an edge to its user cluster. Items of an item cluster
are wanted by the same user clusters, so most need no more than an edge to their item cluster. Between the two, user
clusters are attached to parents, parents reach every item cluster, and a user cluster that wants an item cluster much
more than its parent does gets a shortcut to it::

    user - user cluster - parent - item cluster - item
                   \_________________/             (shortcuts)

Weights follow from one rule. The loss is the cross-entropy of what users want and of softmax(-distance); it falls
along (target - predicted), what flows over an edge if users get what they want and what flows now. So an edge becomes
longer by log(predicted / target), damped, which is exact where no other edge moves. All of it happens at
the level of user clusters, which are hundreds, not users.

Paths only ever go from left to right: a constant for every level makes all paths back too long, and as every path from
a user to an item has the same constants, the order of the items does not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.utils.extmath import randomized_svd

from prodige import _core
from prodige.graph.graph import Graph
from prodige.metric.clusters import k_means, k_means_in_time
from prodige.progress import Monitor
from prodige.recommendation.targets import Preferences
from prodige.threads import count_threads, one_thread

# Rounds of flows over the whole run; the loss moves in the fourth digit only from then on.
N_STEPS = 40

# When edges are chosen, as shares of the run: once the rest has settled, and anew in the light of what they changed.
_CHOICES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)

# Directions in which users and items are told apart before they are grouped.
_N_FACTORS = 64

# Power iterations that find the directions, and rows that groups are learned from at once.
_N_ITERATIONS = 7
_BATCH = 8192
_LEAST_BATCH = 1024

# Shares of a time limit that may be over when directions and groups (users, items, user clusters) are found.
_FOUND = 0.05
_GROUPED = (0.2, 0.25, 0.28)

# How far a weight moves of the way that would be right if no other moved.
_STEP = 0.5

# Users, or parts of one, that are taken to be given as much as they want: it keeps rare edges from running away.
_CALM = 1e-2

# By how much the second edge of an item may be longer than its first when they are chosen.
_OFFSETS = np.array([0, 0.5, 1, 1.5, 2, 3, 4], dtype=np.float32)

# Item clusters that an item chooses its second from.
_N_CANDIDATES = 16

Labels = NDArray[np.int64]
Table = NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """How many vertices of each kind, and how many edges they may have between them.

    Attributes
    ----------
    n_user_clusters, n_parents, n_item_clusters : int
    n_free : int
        Edges left for shortcuts and for second edges of items.
    """

    n_user_clusters: int
    n_parents: int
    n_item_clusters: int
    n_free: int

    @property
    def n_hubs(self) -> int:
        """Vertices that are neither users nor items."""
        return self.n_user_clusters + self.n_parents + self.n_item_clusters


def choose_sizes(n_users: int, n_items: int, numbers_per_item: float) -> Sizes:
    """Return the sizes for a budget: one number a vertex, two an edge.

    After one edge for each user and item, a quarter of the rest goes into the edges of the parents. With twice the
    groups, each has half the data to learn from, so their number grows with the root of the edges there are.

    Examples
    --------
    >>> from prodige.recommendation.hub_graph import choose_sizes
    >>> choose_sizes(37_501, 9_836, 4)
    Sizes(n_user_clusters=615, n_parents=24, n_item_clusters=246, n_free=16706)
    """
    n = n_users + n_items
    spare = int((numbers_per_item - 3) * n / 2)
    least = 3 + 2 * 4.5 / n
    if spare < 5:
        raise ValueError(
            f"numbers_per_item = {numbers_per_item} is too small: with an edge for each of {n_users} users and "
            f"{n_items} items, and a few between them, it takes {least:.4g} or more"
        )
    root = math.sqrt(spare)
    n_item_clusters = int(np.clip(1.6 * root, 1, max(1, n_items // 8)))
    n_user_clusters = int(np.clip(4 * root, 1, max(1, n_users // 8)))
    n_parents = int(np.clip(spare / 4 / n_item_clusters, 1, n_user_clusters))

    def n_free() -> int:
        # A vertex is half an edge.
        hubs = n_user_clusters + n_parents + n_item_clusters
        return spare - math.ceil(hubs / 2) - n_user_clusters - n_parents * n_item_clusters

    while n_free() < 0:  # the smallest budgets: fewer of everything
        n_user_clusters, n_item_clusters = max(1, n_user_clusters // 2), max(1, n_item_clusters // 2)
        n_parents = min(n_parents, n_user_clusters)
    return Sizes(n_user_clusters, n_parents, n_item_clusters, n_free())


@one_thread()
def fit_hub_graph(
    user_items: csr_array,
    numbers_per_item: float,
    monitor: Monitor,
    random: np.random.RandomState,
    n_jobs: int | None = None,
) -> Graph:
    """Fit a graph of users (vertices 0 to U - 1), items (the next I) and groups of both.

    Parameters
    ----------
    user_items : csr_array, shape [U, I]
        As :func:`prodige.recommendation.interactions.check_interactions` gives it.
    numbers_per_item : float
        Numbers that the graph may take for each user and item.
    monitor : Monitor
        Of :data:`N_STEPS` steps. Its time limit holds for what comes before them, too.
    random : RandomState
        The same numbers give the same graph with any number of threads, unless ``monitor`` goes by time.
    n_jobs : int, optional

    Returns
    -------
    Graph
        Its items are users and items. Ctrl-C ends a run early, but not without a graph once there are groups.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.hub_graph import N_STEPS, fit_hub_graph
    >>> from prodige.progress import Monitor
    >>> tastes = np.kron(np.eye(2), np.ones((20, 10))).astype(np.float32)  # two crowds, ten items each
    >>> graph = fit_hub_graph(csr_array(tastes), 4, Monitor(N_STEPS), np.random.RandomState(0))
    >>> distances = graph.distances([0], range(40, 60))[0]
    >>> bool(distances[:10].max() < distances[10:].min())
    True
    """
    n_users, n_items = user_items.shape
    sizes = choose_sizes(n_users, n_items, numbers_per_item)
    users, items = factors(user_items, random, monitor)
    cluster_of_user, similarity = group(users, sizes.n_user_clusters, random, monitor, _GROUPED[0])
    item_clusters, _ = group(items, sizes.n_item_clusters, random, monitor, _GROUPED[1])
    centers = unit(sum_rows(users, cluster_of_user, sizes.n_user_clusters))
    parents, _ = group(centers, sizes.n_parents, random, monitor, _GROUPED[2])

    # From here on there is always a graph to keep.
    members = csr_array(
        (np.ones(n_users, np.float32), (cluster_of_user, np.arange(n_users))), shape=(sizes.n_user_clusters, n_users)
    )
    n_members = np.maximum(np.bincount(cluster_of_user, minlength=sizes.n_user_clusters), 1e-3).astype(np.float32)
    target = monitor.insist(lambda: Preferences(user_items, random, monitor).of_groups(members) * n_members[:, None])
    threads = count_threads(n_jobs)
    layers = monitor.insist(lambda: Layers.start(target, parents, item_clusters, sizes.n_item_clusters, threads))
    n = n_users + n_items
    rounds = list(_CHOICES)
    monitor.prepared()
    try:
        for progress in monitor.run():
            after = replace(layers)
            if rounds and progress >= rounds[0]:
                after.choose_edges(sizes.n_free)
            loss = after.improve()
            layers, rounds = after, [share for share in rounds if share > progress]
            n_edges = n + layers.n_edges
            monitor.record(progress, loss / n_users, n_edges, (n + sizes.n_hubs + 2 * n_edges) / n)
    except KeyboardInterrupt:
        monitor.stopped = "interrupt"

    def finish() -> Graph:
        last = replace(layers)
        if len(rounds) == len(_CHOICES):  # stopped before there was time for it
            last.choose_edges(sizes.n_free)
        return last.to_graph(cluster_of_user, 1 - similarity)

    return monitor.insist(finish)


@dataclass
class Layers:
    """The graph between user clusters and items, while it is learned.

    A shortcut of length ``inf`` is none, and so is the second item cluster -1 of an item. Arrays are replaced, never
    changed, so that a shallow copy can be improved while this one stays as it is.

    Shapes:
        - target ``[T, I]``: what the users of a user cluster want; a row adds up to their number
        - parent ``[T]``, offset ``[T]``: the edge of a user cluster to its parent
        - base ``[P, G]``: edges of parents to item clusters
        - shortcut ``[T, G]``: edges of user clusters to item clusters
        - first, second ``[I]``, with weights: edges of items to item clusters
    """

    target: NDArray[np.float32]
    parent: Labels
    offset: Table
    base: Table
    shortcut: Table
    first: NDArray[np.int32]
    first_weight: Table
    second: NDArray[np.int32]
    second_weight: Table
    n_jobs: int

    @classmethod
    def start(
        cls, target: NDArray[np.float32], parent: Labels, first: Labels, n_item_clusters: int, n_jobs: int
    ) -> Layers:
        """Return layers without shortcuts and second edges, right for each parent and item cluster as a whole."""
        n_user_clusters, n_items = target.shape
        demand = np.maximum(target.sum(axis=0, dtype=np.float64), np.finfo(np.float32).tiny)
        of_parents = sum_rows(target, parent, int(parent.max()) + 1)
        of_item_clusters = sum_rows(of_parents.T, first, n_item_clusters).T
        # As if demand had nothing to do with the item cluster: the number of users times the demand of an item cluster.
        expected = np.outer(of_parents.sum(axis=1), np.bincount(first, demand, n_item_clusters)) / demand.sum()
        return cls(
            target=target,
            parent=parent,
            offset=np.zeros(n_user_clusters),
            base=np.log((expected + _CALM) / (of_item_clusters + _CALM)),
            shortcut=np.full((n_user_clusters, n_item_clusters), np.inf),
            first=first.astype(np.int32),
            first_weight=-np.log(demand / demand.sum()),
            second=np.full(n_items, -1, np.int32),
            second_weight=np.zeros(n_items),
            n_jobs=n_jobs,
        )

    @property
    def n_edges(self) -> int:
        """Edges but for the first ones of users and items."""
        return self.parent.size + self.base.size + int(np.isfinite(self.shortcut).sum()) + int((self.second >= 0).sum())

    def reach(self) -> tuple[Table, Table]:
        """Return the distances of user to item clusters over parents, and by the shorter path; [T, G] both."""
        by_parent = self.offset[:, None] + self.base[self.parent]
        return by_parent, np.minimum(by_parent, self.shortcut)

    def improve(self) -> float:
        """Move all weights towards giving what is wanted; return the loss before."""
        by_parent, reach = self.reach()
        loss, target, predicted, item_target, item_predicted = _core.measure_flows(
            reach.astype(np.float32),
            self.first,
            self.first_weight.astype(np.float32),
            self.second,
            self.second_weight.astype(np.float32),
            self.target,
            self.n_jobs,
        )
        item_moves = move(item_target, item_predicted)
        self.first_weight = self.first_weight + item_moves[:, 0]
        self.second_weight = self.second_weight + item_moves[:, 1]
        is_shortcut = self.shortcut < by_parent
        self.shortcut = np.where(is_shortcut, self.shortcut + move(target, predicted), self.shortcut)
        target[is_shortcut] = predicted[is_shortcut] = 0
        self.offset = self.offset + move(target.sum(axis=1), predicted.sum(axis=1))
        n_parents = len(self.base)
        self.base = self.base + move(
            sum_rows(target, self.parent, n_parents), sum_rows(predicted, self.parent, n_parents)
        )
        return loss

    def choose_edges(self, n_edges: int) -> None:
        """Choose shortcuts and second edges anew: those that lower the loss most, all in one ranking."""
        by_parent, reach = self.reach()
        rate = self._rate(reach)
        self._choose_first(reach, rate)
        target = sum_rows(self.target.T, self.first, reach.shape[1]).T
        at_hand = np.bincount(self.first, np.exp(-self.first_weight), reach.shape[1])
        predicted = rate[:, None] * at_hand * np.exp(-by_parent)
        # Exact where an edge changes nothing else: it then carries what is wanted instead of what was given.
        gains = target * np.log((target + _CALM) / (predicted + _CALM)) - (target - predicted)
        gains[target <= predicted] = 0

        item_cluster, offset, item_gains = self._best_second(reach, rate)
        ranking = np.concatenate([gains.ravel(), item_gains])
        n_edges = min(n_edges, int((ranking > 0).sum()))
        chosen = np.zeros(ranking.size, dtype=bool)
        chosen[np.argpartition(-ranking, n_edges - 1)[:n_edges] if n_edges else []] = True

        is_shortcut = chosen[: gains.size].reshape(gains.shape)
        fitting = by_parent + np.log((predicted + _CALM) / (target + _CALM))
        self.shortcut = np.where(is_shortcut, np.minimum(self.shortcut, fitting), np.inf)
        has_second = chosen[gains.size :]
        self.second = np.where(has_second, item_cluster, -1).astype(np.int32)
        self.second_weight = self.first_weight + np.where(has_second, offset, 0)
        self._level_items()

    def _rate(self, reach: Table) -> Table:
        """Return what a user cluster gives to an item at distance 0, shape [T]."""
        total = np.zeros(len(reach))
        for part in range(0, len(reach), 64):
            total[part : part + 64] = np.exp(-self._distances(reach[part : part + 64])).sum(axis=1)
        return np.asarray(self.target.sum(axis=1) / total)

    def _distances(self, reach: Table) -> Table:
        """Return the distances of a few user clusters to all items."""
        distances = reach[:, self.first] + self.first_weight
        others = np.flatnonzero(self.second >= 0)
        distances[:, others] = np.minimum(
            distances[:, others], reach[:, self.second[others]] + self.second_weight[others]
        )
        return np.asarray(distances)

    def _choose_first(self, reach: Table, rate: Table) -> None:
        """Let every item choose its item cluster anew, and its weight."""
        demand = self.target.sum(axis=0, dtype=np.float64)
        offered = rate @ np.exp(-reach)
        losses = self.target.T @ reach.astype(np.float32) + np.outer(demand, np.log(offered)).astype(np.float32)
        self.first = losses.argmin(axis=1).astype(np.int32)
        self.first_weight = np.log(offered[self.first] / np.maximum(demand, np.finfo(np.float32).tiny))

    def _best_second(
        self, reach: Table, rate: Table
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        """Return the best second item cluster of each item, how much longer that edge is, and the gain."""
        by_item = np.ascontiguousarray(self.target.T)
        losses = by_item @ reach.astype(np.float32)
        losses += np.outer(by_item.sum(axis=1), np.log(rate @ np.exp(-reach))).astype(np.float32)
        n_candidates = min(_N_CANDIDATES, losses.shape[1])
        candidates = np.argpartition(losses, n_candidates - 1, axis=1)[:, :n_candidates]
        return _core.choose_second(
            by_item,
            rate.astype(np.float32),
            np.ascontiguousarray(reach.T, dtype=np.float32),
            self.first,
            np.ascontiguousarray(candidates, dtype=np.int32),
            _OFFSETS,
            self.n_jobs,
        )

    def _level_items(self) -> None:
        """Move both edges of each item together, so that it is given as much as it is wanted."""
        _, reach = self.reach()
        rate = self._rate(reach)
        predicted = np.zeros(self.first.size)
        for part in range(0, len(reach), 64):
            predicted += rate[part : part + 64] @ np.exp(-self._distances(reach[part : part + 64]))
        shift = np.log(predicted / np.maximum(self.target.sum(axis=0, dtype=np.float64), np.finfo(np.float32).tiny))
        self.first_weight = self.first_weight + shift
        self.second_weight = self.second_weight + shift

    def to_graph(self, cluster_of_user: Labels, user_weight: NDArray[np.floating]) -> Graph:
        """Return the graph of users, items, user clusters, parents and item clusters, in this order.

        Parameters
        ----------
        cluster_of_user : ndarray of int, shape [U]
            The cluster of each user.
        user_weight : ndarray, shape [U]
            Length of the edge to it. It changes nothing for the user itself: all its paths begin there.
        """
        by_parent, reach = self.reach()
        t, g = np.nonzero(self.shortcut < by_parent)
        # Constants for the levels: no weight is negative, and a path back costs more than any path forward.
        up, across, down = -self.offset.min(), -self.base.min(), -self.first_weight.min()
        has_second = np.flatnonzero(self.second >= 0)
        if has_second.size:
            down = max(down, -self.second_weight[has_second].min())
        if t.size:
            across = max(across, -self.shortcut[t, g].min() - up)
        longest = reach.max() + self.first_weight.max() + up + across + down
        level = longest / 2

        n_users, n_items = cluster_of_user.size, self.first.size
        n_user_clusters, n_parents = self.parent.size, len(self.base)
        first_item, first_user_cluster = n_users, n_users + n_items
        first_parent = first_user_cluster + n_user_clusters
        first_item_cluster = first_parent + n_parents
        p, h = np.indices(self.base.shape).reshape(2, -1)
        edges = [
            (np.arange(n_users), first_user_cluster + cluster_of_user, np.maximum(user_weight, 0)),
            (first_user_cluster + np.arange(n_user_clusters), first_parent + self.parent, self.offset + up + level),
            (first_parent + p, first_item_cluster + h, self.base.ravel() + across + level),
            (first_user_cluster + t, first_item_cluster + g, self.shortcut[t, g] + up + across + 2 * level),
            (first_item + np.arange(n_items), first_item_cluster + self.first, self.first_weight + down + level),
            (
                first_item + has_second,
                first_item_cluster + self.second[has_second],
                self.second_weight[has_second] + down + level,
            ),
        ]
        tails, heads, weights = (np.concatenate(column) for column in zip(*edges, strict=True))
        n_vertices = first_item_cluster + self.base.shape[1]
        return Graph.from_edges(tails, heads, weights, n_vertices=n_vertices, n_items=first_user_cluster)


# -- groups ----------------------------------------------------------------------------------------------------------


def factors(
    user_items: csr_array, random: np.random.RandomState, monitor: Monitor
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return users and items as rows of length 1, in the directions that tell them apart best."""
    interacted = csr_array(
        (np.ones(user_items.nnz, np.float32), user_items.indices, user_items.indptr), shape=user_items.shape
    )
    of_users = np.maximum(np.diff(interacted.indptr), 1) ** -0.5
    of_items = np.maximum(np.asarray(interacted.sum(axis=0)).ravel(), 1) ** -0.5
    scaled = csr_array(diags_array(of_users) @ interacted @ diags_array(of_items)).astype(np.float32)
    n_factors = min(_N_FACTORS, min(interacted.shape))
    n_iter = _N_ITERATIONS
    if monitor.max_time is not None:
        before = monitor.seconds
        scaled @ np.ones((interacted.shape[1], n_factors), np.float32)
        # An iteration is two such products, and takes as long again to make their columns independent.
        one = 4 * (monitor.seconds - before)
        n_iter = int(np.clip((_FOUND * monitor.max_time - monitor.seconds) / one, 0, _N_ITERATIONS))
    left, values, right = randomized_svd(scaled, n_factors, n_iter=n_iter, random_state=random)
    return unit(left * values), unit(right.T * values)


def group(
    rows: NDArray[np.float32], n_groups: int, random: np.random.RandomState, monitor: Monitor, share: float
) -> tuple[Labels, NDArray[np.float32]]:
    """Return the group of each row, and its similarity (cosine) to the centre of the group.

    Learning ends when this share of the time is over.
    """
    n_groups = min(n_groups, len(rows))
    if monitor.max_time is None:
        means = k_means(rows, n_groups, random.randint(2**31), batch_size=_BATCH)
        labels = means.labels_
    else:
        batch_size = max(_LEAST_BATCH, 3 * n_groups)
        means = k_means_in_time(rows, n_groups, random, batch_size, lambda: monitor.due(share))
        labels = means.predict(rows)
    centers = unit(means.cluster_centers_)
    return labels.astype(np.int64), np.einsum("ij,ij->i", rows, centers[labels])


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return rows of length 1; rows of zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, np.finfo(np.float32).tiny), dtype=np.float32)


def sum_rows(rows: NDArray[np.floating], labels: NDArray[np.integer], n_groups: int) -> Table:
    """Return the sums of the rows of each group, shape [n_groups, columns]."""
    groups = csr_array((np.ones(labels.size), (labels, np.arange(labels.size))), shape=(n_groups, labels.size))
    return np.asarray(groups @ rows, dtype=np.float64)


def move(target: Table, predicted: Table) -> Table:
    """Return by how much edges should become longer."""
    return np.asarray(_STEP * np.log((predicted + _CALM) / (target + _CALM)))


__all__ = ["N_STEPS", "Layers", "Sizes", "choose_sizes", "fit_hub_graph"]
