r"""Users outside the backbone of a ranking graph: which of its vertices they are attached to.

These *anchors* are chosen, not thinned out. With the backbone fixed, what a user's loss would be with any anchors is
known without trying. One anchor predicts x with probability :math:`e^{-d(a, x)} / Z_a`; several predict with the
greatest of theirs, each times the share :math:`m_a` of the positives that it predicts best. The negative logarithm of
that is a distance again, over edges of weight :math:`\log Z_a - \log m_a`.

*Positives with an edge of their own* say nothing: the edge is the path, and what is asked for later has no such edge.
Hiding some at random would make the others as trivial as before, and leave the graph in use another than the one
learned. Instead a positive never counts where its own edge is among those judged, and no search from an anchor passes
through the user that is attached to it. As a user has few edges and many positives, nearly all of them remain to learn
from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr

from prodige.graph.engine import Engine
from prodige.metric.candidates import Candidates
from prodige.recommendation.interactions import parts
from prodige.recommendation.paper.backbone import Backbone
from prodige.recommendation.paper.candidates import SHORTEST
from prodige.recommendation.paper.softmax import log_partition, reach

# Anchors that a user may have and chooses from, and positives that it looks at. They bound the memory of a choice.
MOST_ANCHORS = 4
_N_OPTIONS = 24
_N_POSITIVES = 24

# Numbers in a block of rows: 16 MiB as float32.
_BLOCK = 1 << 22

Vertices = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Positives(NamedTuple):
    """Items that users interacted with. Shapes: U users, T items of each."""

    targets: Vertices  # [U, T]
    seen: Mask  # [U, T], False where there are fewer


def draw_positives(interacted: csr_array, random: np.random.RandomState) -> Positives:
    """Draw some items that each user interacted with; all of them where there are few."""
    sizes = np.diff(interacted.indptr)
    row = np.repeat(np.arange(sizes.size), sizes)
    shuffled = np.lexsort((random.random_sample(row.size), row))
    place = np.arange(row.size) - interacted.indptr[row]
    drawn = place < _N_POSITIVES
    targets = np.zeros((sizes.size, min(_N_POSITIVES, int(sizes.max()))), dtype=np.int64)
    targets[row[drawn], place[drawn]] = interacted.indices[shuffled[drawn]]
    return Positives(targets, np.arange(targets.shape[1]) < sizes[:, None])


class Options(NamedTuple):
    """What users may be attached to, and how well they would be predicted from there.

    Shapes: H users, K options of each, T positives of each.
    """

    users: Vertices  # [H]
    anchors: Vertices  # [H, K], members of the backbone; -1 where there are fewer
    targets: Vertices  # [H, T], items
    seen: Mask  # [H, T], False where there are fewer
    partition: Floats  # [H, K], log Z of the anchor
    surprise: Floats  # [H, K, T], -log p of the target, from the anchor alone; inf where there is none


class Anchors(NamedTuple):
    """Edges between users and the members of the backbone that they are attached to, and what they want from there."""

    users: Vertices  # [A]
    members: Vertices  # [A]
    weight: Floats  # [A]
    target: csr_array  # [M, I], the part of the loss that asks for an item from a member


class Choice:
    """One choice of anchors by all users outside the backbone, which stays as it is.

    Parameters
    ----------
    backbone : Backbone
    engine : Engine
        The backbone, ready to be searched.
    joined : Candidates
        Of the whole graph: a user may be attached to what it is joined to there.
    positives : Positives
    n_jobs : int
        Threads.
    is_late : callable
        Whether time is up: the options that are left are then not judged.
    """

    def __init__(
        self,
        backbone: Backbone,
        engine: Engine,
        joined: Candidates,
        positives: Positives,
        n_jobs: int,
        is_late: Callable[[], bool] = bool,
    ) -> None:
        self.backbone = backbone
        self.engine = engine
        self.joined = joined
        self.positives = positives
        self.n_jobs = n_jobs
        self.is_late = is_late

    def make(self, most: int, n_edges: int, judge: bool = True) -> Anchors:
        """Return the anchors of all users, up to so many each, as far as they fit in.

        To begin with, while searches are slow and weights are not learned, users take the nearest without judging.
        """
        options = self.options(judge)
        if self.is_late():
            most = 1  # paths between several would have to be searched, too
        picks = np.zeros((options.users.size, most), dtype=np.int64)
        gains = np.full(picks.shape, -np.inf)
        for part in parts(options.users.size, _BLOCK // math.prod(options.surprise.shape[1:])):
            picks[part], gains[part] = rank_options(options.surprise[part], options.seen[part], most)
        return self._attach_users(options, picks, allot(gains, n_edges))

    def options(self, judge: bool = True) -> Options:
        """Return what users may be attached to: the nearest of their candidates, by the weights these started from."""
        joined, members = self.joined, self.backbone.members
        place = np.full(joined.n_vertices, -1)
        place[members] = np.arange(members.size)
        user, anchor = np.concatenate([[joined.i, joined.j], [joined.j, joined.i]], axis=1)
        weight = np.concatenate([joined.weight, joined.weight])
        leads_in = (place[user] < 0) & (place[anchor] >= 0)
        user, anchor, weight = user[leads_in], anchor[leads_in], weight[leads_in]
        order = np.lexsort((anchor, weight, user))
        user, anchor = user[order], anchor[order]
        users, first, row = np.unique(user, return_index=True, return_inverse=True)
        column = np.arange(user.size) - first[row]
        near = column < (_N_OPTIONS if judge else 1)
        anchors = np.full((users.size, int(column[near].max(initial=0)) + 1), -1)
        anchors[row[near], column[near]] = place[anchor[near]]
        targets, seen = self.positives.targets[users], self.positives.seen[users]
        if judge:
            return self._judge(users, anchors, targets, seen)
        nothing = np.zeros((*anchors.shape, targets.shape[1]), dtype=np.float32)
        return Options(users, anchors, targets, seen, nothing[:, :, 0], nothing)

    def _judge(self, users: Vertices, anchors: Vertices, targets: Vertices, seen: Mask) -> Options:
        """Search from all that users may be attached to; what most of them may, first, in case that time runs out."""
        items = self.backbone.items
        partition = np.full(anchors.shape, np.inf, dtype=np.float32)
        surprise = np.full((*anchors.shape, targets.shape[1]), np.inf, dtype=np.float32)
        place = np.flatnonzero(anchors >= 0)
        found, turn, n_users = np.unique(anchors.flat[place], return_inverse=True, return_counts=True)
        order = np.argsort(-n_users, kind="stable")
        found, turn = found[order], np.argsort(order)[turn]
        place, turn = place[np.argsort(turn, kind="stable")], np.sort(turn)
        ends = np.append(0, np.cumsum(n_users[order]))
        for part in parts(found.size, _BLOCK // self.backbone.n_items):
            if self.is_late():
                self._take_nearest(anchors, partition, surprise)
                break
            distance, _, _ = reach(self.engine.distances(found[part].astype(np.int32), items, self.n_jobs))
            here = slice(ends[part.start], ends[part.stop])
            row, column = np.divmod(place[here], anchors.shape[1])
            source = turn[here] - part.start
            log_z = log_partition(distance)[source]
            partition[row, column] = log_z
            surprise[row, column] = distance[source[:, None], targets[row]] + log_z[:, None]
            # Of a target that an option leads to, its edge says nothing: it counts as the mean of the others.
            own = (items[targets[row]] == anchors[row, column, None]) & seen[row]
            others = seen[row] & ~own
            mean = surprise[row, column].sum(axis=1, where=others) / np.maximum(others.sum(axis=1), 1)
            surprise[row, column] = np.where(own, mean[:, None], surprise[row, column])
        return Options(users, anchors, targets, seen, partition, surprise)

    @staticmethod
    def _take_nearest(anchors: Vertices, partition: Floats, surprise: Floats) -> None:
        """Make the nearest option the best of users none of whose options was judged."""
        rest = np.flatnonzero(np.isinf(partition).all(axis=1) & (anchors[:, 0] >= 0))
        partition[rest, 0], surprise[rest, 0] = 0, 0

    def _attach_users(self, options: Options, picks: Vertices, taken: Mask) -> Anchors:
        """Return the edges of the options taken, with their weights, and the targets of every member."""
        users, n_seen = options.users, np.maximum(options.seen.sum(axis=1), 1)[:, None]
        anchors = np.take_along_axis(options.anchors, picks, axis=1)
        surprise = np.take_along_axis(options.surprise, picks[:, :, None], axis=1)
        surprise[~taken] = np.inf
        holder = surprise.argmin(axis=1)
        share = np.stack([((holder == k) & options.seen).sum(axis=1) for k in range(picks.shape[1])], axis=1) / n_seen
        # An edge that is best for no positive at all still gets half of one.
        weight = np.take_along_axis(options.partition, picks, axis=1) - np.log(np.maximum(share, 0.5 / n_seen))
        weight[~taken] = np.inf
        weight += np.maximum(SHORTEST - weight.min(axis=1, keepdims=True), 0)
        self._lengthen(anchors, weight)

        is_own = (self.backbone.items[options.targets][:, None] == anchors[:, :, None]) & taken[:, :, None]
        row, column = np.nonzero(options.seen & ~is_own.any(axis=1))
        source, positive = anchors[row, holder[row, column]], options.targets[row, column]
        part = 1 / n_seen[row, 0]
        connector, place, free = self._free_positives()
        target = csr_array(
            (
                np.concatenate([part, free]).astype(np.float32),
                (np.concatenate([source, connector]), np.concatenate([positive, place])),
            ),
            shape=(self.backbone.members.size, self.backbone.n_items),
        )
        row, column = np.nonzero(taken)
        return Anchors(users[row], anchors[row, column], weight[row, column].astype(np.float32), target)

    def _free_positives(self) -> tuple[Vertices, Vertices, NDArray[np.float64]]:
        """Return what connectors want: their positives without an edge to them, and the part of each in the loss."""
        backbone, n = self.backbone, self.backbone.members.size
        targets, seen = self.positives
        connectors = backbone.members[: backbone.n_connectors]
        row, column = np.nonzero(seen[connectors])
        positive = targets[connectors[row], column]
        edge = np.minimum(backbone.tail, backbone.head).astype(np.int64) * n + np.maximum(backbone.tail, backbone.head)
        free = ~np.isin(row * n + backbone.items[positive], edge)
        n_seen = seen[connectors].sum(axis=1)
        return row[free], positive[free], 1 / n_seen[row[free]]

    def _lengthen(self, anchors: Vertices, weight: NDArray[Any]) -> None:
        """Make all edges of a user longer by as much, until no path between two of its anchors leads through."""
        n, is_edge = self.backbone.members.size, np.isfinite(weight)
        earlier = np.triu(np.ones((anchors.shape[1], anchors.shape[1]), dtype=bool), 1)
        row, one, other = np.nonzero(is_edge[:, :, None] & is_edge[:, None] & earlier)
        source, positive = anchors[row, one], anchors[row, other]
        order = np.argsort(source, kind="stable")
        found, first = np.unique(source[order], return_index=True)
        ends = np.append(first, order.size)
        lift = np.zeros(len(weight))
        everything = np.arange(n, dtype=np.int32)
        for part in parts(found.size, _BLOCK // n):
            distance = self.engine.distances(found[part].astype(np.int32), everything, self.n_jobs)
            here = order[ends[part.start] : ends[part.stop]]
            between = distance[np.searchsorted(found[part], source[here]), positive[here]]
            lack = (between - weight[row[here], one[here]] - weight[row[here], other[here]]) / 2
            np.maximum.at(lift, row[here], np.where(np.isinf(lack), 0, lack))
        weight += lift[:, None]


def rank_options(surprise: Floats, seen: Mask, most: int) -> tuple[Vertices, NDArray[np.float64]]:
    """Return which options to take first, second, and so on, and what the loss falls by with each, both [H, most].

    Each is the best there is beside those taken before. The loss is the mean surprise under the best of the anchors
    taken, and the entropy of their shares. Gains are -inf where a user has fewer options.

    Examples
    --------
    The second option predicts both targets well, the first only one of them:

    >>> import numpy as np
    >>> from prodige.recommendation.paper.users import rank_options
    >>> rank_options(np.array([[[0.5, 9.0], [1.0, 1.0]]], dtype=np.float32), np.ones((1, 2), dtype=bool), 1)[0]
    array([[1]])
    """
    n_users, n_options, n_targets = surprise.shape
    n_seen = np.maximum(seen.sum(axis=1), 1)[:, None]
    rows = np.arange(n_users)
    best = np.full((n_users, n_targets), np.inf, dtype=np.float32)
    holder = np.full((n_users, n_targets), -1)
    missing: Mask = np.asarray(np.isinf(surprise).any(axis=2))
    loss = np.full(n_users, np.inf)
    picks = np.zeros((n_users, most), dtype=np.int64)
    gains = np.full((n_users, most), -np.inf)
    for turn in range(min(most, n_options)):
        better = (surprise < best[:, None]) & seen[:, None]
        after = np.where(seen[:, None], np.minimum(surprise, best[:, None]), 0).sum(axis=2) / n_seen
        after += entr(better.sum(axis=2) / n_seen)
        for earlier in range(turn):
            left = (holder == earlier)[:, None] & ~better & seen[:, None]
            after += entr(left.sum(axis=2) / n_seen)
        after[missing] = np.inf
        pick = after.argmin(axis=1)
        found = np.isfinite(after[rows, pick])
        picks[:, turn] = pick
        gains[found, turn] = loss[found] - after[rows, pick][found]
        loss = after[rows, pick]
        missing[rows, pick] = True  # none is taken twice
        taken = better[rows, pick]
        best = np.where(taken, surprise[rows, pick], best)
        holder[taken] = turn
    return picks, gains


def allot(gains: NDArray[np.float64], n_edges: int) -> Mask:
    """Return which gains are worth an edge, shape [H, most]: the first of each user, then the largest ones in order.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.recommendation.paper.users import allot
    >>> allot(np.array([[np.inf, 0.1, 0.0], [np.inf, 0.3, 0.2]]), 4)
    array([[ True, False, False],
           [ True,  True,  True]])
    """
    taken = np.zeros(gains.shape, dtype=np.bool_)
    taken[:, 0] = True
    later = np.minimum.accumulate(gains[:, 1:], axis=1)  # none is taken before an earlier one
    order = np.argsort(-later, axis=None, kind="stable")[: max(n_edges - len(gains), 0)]
    user, turn = np.unravel_index(order[later.flat[order] > -np.inf], later.shape)
    taken[user, 1 + turn] = True
    return taken
