"""Parameters by themselves; test_compressor.py has all that is refused, through the class that users call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prodige import DistanceCompressor
from prodige.compression import saving
from prodige.compression.parameters import check_parameters, check_shared, settings_of


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "precomputed"}, "metric = 'precomputed' has a column for each item of all ranks"),
        ({"method": "l0"}, "method = 'l0' is learned by one process"),
        ({"max_time": 3.0}, "max_time = 3.0 is up at other steps on other ranks"),
    ],
)
def test_what_processes_cannot_share(parameters: dict[str, Any], message: str) -> None:
    check_shared(DistanceCompressor())
    with pytest.raises(ValueError, match=message):
        check_shared(DistanceCompressor(**parameters))


def test_budgets_depend_on_the_number_of_items() -> None:
    check_parameters(DistanceCompressor(numbers_per_item=2.5), 4)
    with pytest.raises(ValueError, match="a connected graph of 5 items needs 4 edges"):
        check_parameters(DistanceCompressor(numbers_per_item=2.5), 5)


def test_settings_are_plain_and_all_that_matters() -> None:
    found = settings_of(DistanceCompressor(metric=max, random_state=np.random.RandomState(0), verbose=1))
    assert set(found) == {*saving.PARAMETERS, "memory_limit", "random_state"}
    assert (found["metric"], found["random_state"]) == ("builtin_function_or_method", "RandomState")
    assert settings_of(DistanceCompressor(n_jobs=1)) == settings_of(DistanceCompressor(n_jobs=2))
