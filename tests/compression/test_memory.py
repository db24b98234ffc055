"""What a fit takes: limits are kept to, on paper and in a process; one that is too small says the least."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodige import estimate_memory
from prodige.compression.memory import MOST_AT_ONCE, SAMPLE, parse_bytes, sample_sizes

SIZES = st.integers(3, 10**8)


@settings(max_examples=60, deadline=None)
@given(n=SIZES, features=st.integers(1, 2000), bits=st.integers(8, 256), share=st.floats(0.2, 1.5))
def test_limits_are_kept_to(n: int, features: int, bits: int, share: float) -> None:
    free = estimate_memory(n, features, bits_per_item=bits, n_jobs=1)
    assert free.is_whole == (n <= MOST_AT_ONCE)
    assert free.n_sample == (n if free.is_whole else SAMPLE)
    limit = int(share * free.bytes)
    try:
        within = estimate_memory(n, features, bits_per_item=bits, memory_limit=limit, n_jobs=1)
    except ValueError as error:
        found = re.search(r"take ([\d.]+) (\w+) at least", str(error))
        assert found is not None
        least = parse_bytes("memory_limit", found[1] + found[2])
        assert least > 0.99 * limit  # as written, in three digits
        assert estimate_memory(n, features, bits_per_item=bits, memory_limit=int(1.01 * least)).bytes <= 1.01 * least
        return
    assert within.bytes <= limit
    assert within.n_sample <= free.n_sample
    if share >= 1:
        assert within == free


@settings(max_examples=30, deadline=None)
@given(n=SIZES, features=st.integers(1, 1000))
def test_more_takes_more(n: int, features: int) -> None:
    one, two = (estimate_memory(some, features, n_jobs=1) for some in (n, 2 * n))
    if one.is_whole == two.is_whole:
        assert one.bytes < two.bytes
        assert one.seconds < two.seconds
    assert estimate_memory(n, features, objective="neighbors").bytes > one.bytes
    assert estimate_memory(n, features, n_jobs=2).seconds == pytest.approx(one.seconds / 2)
    assert 0 <= one.seconds_of_pass < one.seconds


@given(st.integers(3, 10**6))
def test_samples_shrink(most: int) -> None:
    sizes = list(sample_sizes(most))
    assert all(a * b >= c * d for (a, b), (c, d) in pairwise(sizes))
    assert sizes[0][0] == most


@pytest.mark.parametrize("value", ["", "4 GHz", "-1GB", "0", 0, -5, True, None, "1e9", float("nan")])
def test_what_is_no_size_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
        parse_bytes("memory_limit", value)


PROGRAM = """
import resource, sys
import numpy as np
from prodige import DistanceCompressor
X = np.random.default_rng(0).normal(size=(15_000, 16)).astype(np.float32)
DistanceCompressor(bits_per_item=12, random_state=0, n_jobs=1).fit(X[:1000, :3])  # libraries are loaded by now
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
DistanceCompressor(bits_per_item=12, memory_limit="200MB", random_state=0, n_jobs=1).fit(X)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_a_process_keeps_to_its_limit() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 200e6
