"""Tuning: how strongly a teacher believes and how strongly it is held back, chosen together.

What pairs that did not meet should score (``alpha``) adds to the ridge of every row, so the best penalty falls as
``alpha`` rises: one of them changed at a time stops beside the best of both. Moves go along that slope, too, and the
penalty has finer steps at the end. Teachers are judged in floats: that takes little time, and what is best there is
near the best for codes; a few that are nearly as good are tried with codes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from prodige.recommendation.teacher import TeacherSettings

N_TEACHERS = 14  # at most
# For which other settings are taken: about the standard error of a difference over 8,000 interactions held out. Where
# data are many, settings near the first ones differ by less, and those that seem best are so by chance.
LEAST_GAIN = 1.5e-3

# Half octaves by which alpha and penalty are multiplied.
Place: TypeAlias = tuple[int, int]
_COARSE: tuple[Place, ...] = ((2, 0), (-2, 0), (0, 2), (0, -2), (2, -1), (-2, 1))
_FINE: tuple[Place, ...] = ((0, 1), (0, -1), (2, -1), (-2, 1))


class Tuning:
    """A search in steps, which can be left after any of them.

    Parameters
    ----------
    start : TeacherSettings
    judge : callable
        Returns how good a teacher of these settings is; higher is better.

    Examples
    --------
    >>> from math import log2
    >>> from prodige.recommendation.teacher import TeacherSettings
    >>> from prodige.recommendation.tuning import Tuning
    >>> def judge(settings):  # the best penalty falls as alpha rises
    ...     ridge, belief = settings.penalty * settings.alpha**0.5, settings.alpha
    ...     return -abs(log2(ridge / 0.003)) - 0.1 * abs(log2(belief / 0.12))
    >>> tuning = Tuning(TeacherSettings(rank=8), judge)
    >>> for quality in tuning.steps():
    ...     pass
    >>> tuning.best.alpha, round(tuning.best.penalty, 4)
    (0.12, 0.0075)
    """

    def __init__(self, start: TeacherSettings, judge: Callable[[TeacherSettings], float]) -> None:
        self.start = start
        self.judge = judge
        self.place: Place = (0, 0)
        self.known: dict[Place, float] = {}

    @property
    def best(self) -> TeacherSettings:
        """The best settings so far."""
        return self.at(self.place)

    def at(self, place: Place) -> TeacherSettings:
        """Return the settings so many half octaves from the start."""
        alpha, penalty = (2.0 ** (steps / 2) for steps in place)
        return replace(self.start, alpha=self.start.alpha * alpha, penalty=self.start.penalty * penalty)

    def steps(self) -> Iterator[float]:
        """Try neighbouring settings for as long as one of them is better; yield how good the best is."""
        self.known[self.place] = self.judge(self.best)
        yield self.known[self.place]
        for moves in (_COARSE, _FINE):
            improved = True
            while improved:
                improved = False
                for move in moves:
                    while (place := (self.place[0] + move[0], self.place[1] + move[1])) not in self.known:
                        if len(self.known) >= N_TEACHERS:
                            return
                        self.known[place] = self.judge(self.at(place))
                        is_better = self.known[place] > self.known[self.place] + LEAST_GAIN
                        if is_better:
                            self.place, improved = place, True
                        yield self.known[self.place]
                        if not is_better:
                            break

    def runners_up(self, most: int, behind: float) -> list[TeacherSettings]:
        """Return the settings next to the best, those not further behind, the best of them first."""
        least = self.known.get(self.place, 0.0) - behind
        others = [place for place, quality in self.known.items() if place != self.place and quality >= least]
        return [self.at(place) for place in sorted(others, key=lambda place: -self.known[place])[:most]]
