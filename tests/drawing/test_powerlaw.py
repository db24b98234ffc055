"""Power laws: exponents are found again, and nothing is made up where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import zeta

from prodige.drawing.powerlaw import PowerLaw, fit_power_law


@pytest.mark.parametrize("exponent", [1.8, 2.5, 3.5])
def test_exponents_are_found_again(exponent: float) -> None:
    degrees = np.random.default_rng(0).zipf(exponent, size=20_000)
    law = fit_power_law(degrees, k_min=1)
    assert law is not None
    # The standard error of a maximum-likelihood exponent is about (α − 1) / √n.
    assert law.exponent == pytest.approx(exponent, abs=5 * (exponent - 1) / 20_000**0.5)
    assert (law.k_min, law.n_tail) == (1, 20_000)
    assert law.distance < 0.01


def test_the_start_of_the_tail_is_found() -> None:
    """Below 5 edges something else; from there on a power law."""
    rng = np.random.default_rng(1)
    tail = rng.zipf(2.5, size=60_000)
    tail = tail[tail >= 5]
    degrees = np.concatenate([tail, rng.integers(1, 5, size=3 * tail.size)])
    law = fit_power_law(degrees)
    assert law is not None
    assert 4 <= law.k_min <= 8
    assert law.exponent == pytest.approx(2.5, abs=0.15)


def test_no_other_exponent_is_more_likely() -> None:
    degrees = np.random.default_rng(2).integers(1, 40, size=200)
    law = fit_power_law(degrees, k_min=3)
    assert law is not None
    tail = degrees[degrees >= 3]

    def log_likelihood(exponent: float) -> float:
        return float(-exponent * np.log(tail).sum() - tail.size * np.log(zeta(exponent, 3)))

    best = log_likelihood(law.exponent)
    assert all(log_likelihood(other) <= best + 1e-6 for other in np.linspace(1.02, 6, 200))


def test_shares_add_up_to_one() -> None:
    law = PowerLaw(2.5, 3, 100, 0.0)
    assert law.density(np.arange(3, 200_000)).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("degrees", [[], [0, 0], [7], [3] * 50])
def test_nothing_to_fit(degrees: list[int]) -> None:
    assert fit_power_law(np.array(degrees, dtype=int)) is None


def test_large_degrees() -> None:
    law = fit_power_law([10_000] * 40 + [10_001] * 2 + [50_000])
    assert law is None or np.isfinite(law).all()


def test_wrong_degrees() -> None:
    with pytest.raises(TypeError, match="degrees must hold integers, got dtype float64"):
        fit_power_law([1.5, 2.5])
    with pytest.raises(ValueError, match="k_min must be between 1"):
        fit_power_law([1, 2], k_min=0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=0, max_size=60))
def test_any_degrees(degrees: list[int]) -> None:
    law = fit_power_law(np.array(degrees, dtype=int))
    if law is not None:
        assert law.exponent > 1
        assert 0 <= law.distance <= 1
        assert law.n_tail == sum(degree >= law.k_min for degree in degrees)
