r"""Power laws of degrees: how fast vertices of many edges become rare.

Of the vertices with :math:`k_{\min}` edges or more, the share with :math:`k` is
:math:`k^{-\alpha} / \zeta(\alpha, k_{\min})`. The exponent is the one that makes the degrees seen most likely; a line
through a log-log histogram would not be. Where :math:`k_{\min}` is not given, it is the one whose power law is closest
to the degrees, by the largest difference of the two distribution functions (Clauset, Shalizi and Newman, 2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from prodige._validation import check_integer, check_vector

# Exponents that are looked at.
_LEAST, _MOST = 1.01, 20.0

# A tail of fewer vertices, or of degrees that differ by a smaller factor, says nothing; nor is every start of one
# worth a try.
_FEWEST = 10
_LEAST_REACH = 4
_MOST_STARTS = 64


class PowerLaw(NamedTuple):
    """A fitted power law.

    Attributes
    ----------
    exponent : float
    k_min : int
        Edges from where on it holds.
    n_tail : int
        Vertices with so many edges.
    distance : float
        Largest difference between the two distribution functions: 0 where the law is exact.
    """

    exponent: float
    k_min: int
    n_tail: int
    distance: float

    def density(self, degrees: ArrayLike) -> NDArray[np.float64]:
        """Return the share of vertices of these degrees among those of the tail."""
        return np.asarray(np.asarray(degrees, dtype=np.float64) ** -self.exponent / zeta(self.exponent, self.k_min))


def fit_power_law(degrees: ArrayLike, k_min: int | None = None) -> PowerLaw | None:
    """Fit a power law to degrees by maximum likelihood; None where they do not tell an exponent.

    Parameters
    ----------
    degrees : array-like of int
        Edges of each vertex; vertices without edges are left out.
    k_min : int, optional
        Edges from where on the law is to hold; found when left out.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.drawing.powerlaw import fit_power_law
    >>> law = fit_power_law(np.random.default_rng(0).zipf(2.5, size=20_000), k_min=1)
    >>> round(law.exponent, 1)
    2.5
    >>> fit_power_law([3, 3, 3]) is None
    True
    """
    values = check_vector("degrees", degrees)
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"degrees must hold integers, got dtype {values.dtype} such as {values[0]!r}")
    counted = np.sort(values[values > 0])
    if k_min is not None:
        return fit_tail(counted[counted >= check_integer("k_min", k_min, 1, 2**31)], k_min)
    starts = np.unique(counted)
    starts = starts[starts * _LEAST_REACH <= counted.max(initial=0)]
    starts = starts[counted.size - np.searchsorted(counted, starts) >= _FEWEST]
    if starts.size > _MOST_STARTS:
        starts = starts[np.unique(np.geomspace(1, starts.size, _MOST_STARTS).astype(int) - 1)]
    laws = (fit_tail(counted[counted >= start], int(start)) for start in starts)
    return min((law for law in laws if law is not None), key=lambda law: law.distance, default=None)


def fit_tail(tail: NDArray[np.int64], k_min: int) -> PowerLaw | None:
    """Fit a power law to degrees in order that are all ``k_min`` or more; None if all are the same."""
    if tail.size < 2 or tail[0] == tail[-1]:
        return None
    log_sum = float(np.log(tail).sum())

    def unlikelihood(exponent: float) -> float:
        return float(tail.size * math.log(zeta(exponent, k_min)) + exponent * log_sum)

    # Beyond here zeta underflows where k_min is large.
    most = min(_MOST, 600 / math.log(k_min + 1))
    exponent = float(minimize_scalar(unlikelihood, bounds=(_LEAST, most), method="bounded").x)
    degrees, counts = np.unique(tail, return_counts=True)
    seen = counts.cumsum() / tail.size
    target = 1 - zeta(exponent, degrees + 1) / zeta(exponent, k_min)
    # Between two degrees that occur, the law goes on while the degrees seen stay.
    before = 1 - zeta(exponent, degrees) / zeta(exponent, k_min)
    gaps = np.abs(seen - target).max(), np.abs(seen - counts / tail.size - before).max()
    return PowerLaw(exponent, k_min, tail.size, float(max(gaps)))
