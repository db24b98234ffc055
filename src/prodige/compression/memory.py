"""What a fit takes: bytes beside the data, and seconds, before it begins.

A product is fitted to a table of distances, items × landmarks. Where there are more items than such a table has room
for, it is one of a sample, and all others are only asked for their codes, a block at a time. So memory is that of the
sample, which a limit sets, and a few dozen bytes an item. Seconds are those of the table and of the pass over all
items. Their constants were measured (docs/scaling.md says how, and how far they were off).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prodige.compression.budget import Budget
from prodige.compression.lines import LINE_BITS
from prodige.compression.objective import N_NEAR, Objective, near_weight
from prodige.threads import count_threads

# Up to so many items a fit sees all of them; of more, a sample of so many.
MOST_AT_ONCE = 1 << 16
SAMPLE = 50_000

# Landmarks of a whole fit, and of one to a sample, from most to fewest; and the fewest items of a sample.
LANDMARKS = 4096
_SAMPLE_LANDMARKS = (2048, 1024, 512)
_LEAST_SAMPLE = 2000

# Items that all others are measured against, in the pass and whenever items are added; half as many where these hang by
# pendant edges, since more hardly tell them better.
ANCHORS = 2048
PENDANT_ANCHORS = 1024

# So much more is said, as numbers are rounded to three digits, and what is said has to be enough.
_ROUNDING = 1.005

# Bytes that a fit takes whatever its size: blocks, tables of factors, and what libraries keep.
_BASE = 160 << 20

# Bits of a code, about, and numbers that a landmark's distance is held as: the table, and the same in other units.
_CODE_BITS = 7.5
_TABLES = 2

# Bytes that lines take for a pair of landmarks: what is wrong with their distance, and where that pulls.
_PULLS = 20

# Nanoseconds on one thread: of a distance of the fit in each sweep and factor; of one multiplication where distances
# are measured and items placed; of an item in whatever else there is; of trials before the fit. A factor has so many
# coordinates, about.
_FIT_TIME = 4.5
_FIT_TIME_OF_SAMPLE = 15.0  # factors have four times as many hubs there
_MULTIPLY_TIME = 0.17
_ITEM_TIME = 5000.0
_TRIALS_TIME = 5e9
_COORDINATES = 3.2
_LINES_TIME = 1.2e6  # of an item that lines are fitted to, some numbers of them one after the other
_LINES_FOR_A_BIT = 0.4
_HANGING = 7  # multiplications with each line of an anchor, and as many as so many columns of data for all else
_HANGING_ANYWAY = 60
_SEARCH_TIME = 20.0  # of an anchor and a factor, where codes are searched for
_N_SWEEPS = 10

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class Estimate:
    """What a fit will take.

    Attributes
    ----------
    bytes : int
        Of memory at its peak, beside the data and the libraries.
    seconds : float
        On a machine like the one that the constants were measured on: an order of magnitude elsewhere.
    seconds_of_pass : float
        How much of that is the pass over all items.
    n_sample : int
        Items that the tables are learned from.
    n_landmarks : int
        Items that the distances of these are measured to.
    is_whole : bool
        Whether it is a fit to all items, without a pass over them afterwards.
    """

    bytes: int
    seconds: float
    seconds_of_pass: float
    n_sample: int
    n_landmarks: int
    is_whole: bool

    def __str__(self) -> str:
        some = "all items" if self.is_whole else f"a sample of {self.n_sample:,} items"
        return f"about {in_bytes(self.bytes)} of memory beside the data, and {self.seconds:.0f} s; fitted to {some}"


def estimate_memory(
    n_items: int,
    n_features: int,
    *,
    numbers_per_item: float | None = None,
    bits_per_item: float | None = None,
    objective: Objective = "distances",
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
) -> Estimate:
    """Return what compressing so many items takes, before there is anything to compress.

    Parameters
    ----------
    n_items, n_features : int
        Rows and columns of the data.
    numbers_per_item, bits_per_item, objective, memory_limit, n_jobs
        As of :class:`prodige.DistanceCompressor`.

    Returns
    -------
    Estimate
        With ``bytes`` and ``seconds``, and which sample the fit would be of.

    Raises
    ------
    ValueError
        If the limit is too small; the message says the least.

    Examples
    --------
    >>> import prodige
    >>> estimate = prodige.estimate_memory(1_000_000, 64, bits_per_item=64, memory_limit="1GB")
    >>> estimate.bytes <= 10**9, estimate.is_whole
    (True, False)
    """
    limit = None if memory_limit is None else parse_bytes("memory_limit", memory_limit)
    budget = Budget.asked(numbers_per_item, bits_per_item)
    sizing = Sizing(n_items, n_features, budget, near_weight(objective) > 0)
    return sizing.within(limit, count_threads(n_jobs))


@dataclass(frozen=True)
class Sizing:
    """What there is to fit, for which sizes are to be found."""

    n_items: int
    n_features: int
    budget: Budget
    has_near: bool = False

    @property
    def n_factors(self) -> float:
        """Factors that a product of this budget has, about."""
        if self.budget.bits is not None:
            return max(1.0, self.budget.bits / _CODE_BITS)
        return max(1.0, (self.budget.numbers or 0) - 2)

    @property
    def has_lines(self) -> bool:
        """Whether the time is that of lines, if distances are Euclidean; near pairs take about as long as sweeps."""
        return self.budget.bits is not None and self.budget.bits >= LINE_BITS and not self.has_near

    def within(self, limit: int | None, n_threads: int = 1) -> Estimate:
        """Return the largest fit within a limit of bytes: a whole one where that is possible."""
        if self.n_items <= MOST_AT_ONCE:
            whole = self.estimate(self.n_items, LANDMARKS, n_threads, is_whole=True)
            if limit is None or whole.bytes <= limit:
                return whole
        for n_sample, n_landmarks in sample_sizes(min(SAMPLE, self.n_items)):
            found = self.estimate(n_sample, n_landmarks, n_threads)
            if limit is None or found.bytes <= limit:
                return found
        raise ValueError(
            f"memory_limit = {in_bytes(limit or 0)} is too small: {self.n_items:,} items of {self.n_features:,} "
            f"columns take {in_bytes(_ROUNDING * found.bytes)} at least; give as much"
        )

    def estimate(self, n_sample: int, n_landmarks: int, n_threads: int = 1, is_whole: bool = False) -> Estimate:
        """Return what a fit of a given size takes, with a pass over all items unless it is a whole one."""
        n, features, factors = self.n_items, self.n_features, self.n_factors
        landmarks = min(n_landmarks, n_sample)
        near = N_NEAR if self.has_near else 0
        of_sample = 4 * _TABLES * landmarks + 4 * min(landmarks, 1024) + 20 * features + 2000 + 28 * near
        # Codes as they come and as they are kept, twice for a moment; keys of rows, by which copies are found.
        of_item = 14 * factors + 100
        size = _BASE + n_sample * of_sample + n * of_item + 40 * features * ANCHORS
        if self.budget.bits is not None:
            size += _PULLS * landmarks**2
        if self.has_lines:
            seconds = n_sample * (landmarks * features * _MULTIPLY_TIME + _LINES_TIME)
        else:
            seconds = _TRIALS_TIME * min(n_sample / _LEAST_SAMPLE, 1.0)
            fit_time = _FIT_TIME if is_whole else _FIT_TIME_OF_SAMPLE
            seconds += n_sample * landmarks * (factors * _N_SWEEPS * fit_time + features * _MULTIPLY_TIME)
        of_pass = 0.0
        if not is_whole:
            multiplied = ANCHORS * (features + _COORDINATES * factors)
            if self.has_lines:
                n_lines = _LINES_FOR_A_BIT * (self.budget.bits or 0)
                multiplied = PENDANT_ANCHORS * (features + _HANGING * n_lines + _HANGING_ANYWAY)
            of_pass = n * (multiplied * _MULTIPLY_TIME + _ITEM_TIME)
        if near:  # the nearest of the sample, of itself and of all items that go by
            seconds += n_sample**2 * features * _MULTIPLY_TIME
            of_pass += (
                0.0 if is_whole else n * (n_sample * features * _MULTIPLY_TIME + ANCHORS * factors * _SEARCH_TIME)
            )
        seconds, of_pass = (some / 1e9 / n_threads for some in (seconds + of_pass, of_pass))
        return Estimate(int(size), seconds, of_pass, n_sample, landmarks, is_whole)


def sample_sizes(most: int) -> Iterator[tuple[int, int]]:
    """Yield sizes of a sample and numbers of landmarks from the largest fit to the smallest.

    Examples
    --------
    >>> from prodige.compression.memory import sample_sizes
    >>> list(sample_sizes(4000))
    [(4000, 2048), (4000, 1024), (3200, 1024), (2560, 1024), (2048, 1024), (2000, 512)]
    """
    yield most, _SAMPLE_LANDMARKS[0]
    size = float(most)
    while size >= max(2 * _SAMPLE_LANDMARKS[1], _LEAST_SAMPLE):
        yield int(size), _SAMPLE_LANDMARKS[1]
        size *= 0.8
    while size > _LEAST_SAMPLE:
        yield int(size), _SAMPLE_LANDMARKS[2]
        size *= 0.8
    yield min(most, _LEAST_SAMPLE), _SAMPLE_LANDMARKS[2]


def parse_bytes(name: str, value: Any) -> int:
    """Return a number of bytes, which may be written with a unit.

    Examples
    --------
    >>> from prodige.compression.memory import parse_bytes
    >>> parse_bytes("memory_limit", "4GB"), parse_bytes("memory_limit", "1.5 GiB"), parse_bytes("memory_limit", 10**9)
    (4000000000, 1610612736, 1000000000)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]i?)?b?\s*", value.lower())
        number = math.nan if found is None else float(found[1]) * _UNITS[found[2] or ""]
    else:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        number = float(value) if is_number else math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a number of bytes above 0, or one with a unit such as '4GB', got {value!r}")
    return int(number)


def in_bytes(n: float) -> str:
    """Return a number of bytes as people say it.

    Examples
    --------
    >>> from prodige.compression.memory import in_bytes
    >>> in_bytes(512), in_bytes(2_500_000), in_bytes(3.2e9)
    ('512 B', '2.5 MB', '3.2 GB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"
