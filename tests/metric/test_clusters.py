"""k-means finds what is apart, and a seed gives the same bits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from prodige.metric.clusters import cluster_in_parts, k_means, k_means_in_time

BLOBS = np.repeat(10 * np.eye(4), 50, axis=0) + np.random.default_rng(0).normal(size=(200, 4))
GROUPS = np.repeat(np.arange(4), 50)


def agree(labels: np.ndarray) -> bool:
    """Whether labels are those of the blobs, in any order."""
    return len(set(zip(labels.tolist(), GROUPS.tolist(), strict=True))) == len(set(labels.tolist())) == 4


@pytest.mark.parametrize("batch_size", [None, 100])
def test_blobs(batch_size: int | None) -> None:
    one, other = (k_means(BLOBS, 4, random_state=3, batch_size=batch_size) for _ in range(2))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert agree(one.labels_)


def test_fewer_distinct_rows_than_clusters() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert k_means(np.ones((9, 2)), 3, random_state=0).labels_.shape == (9,)


def test_ends_when_the_time_is_over() -> None:
    answers = iter([False, True])
    means = k_means_in_time(BLOBS, 4, np.random.RandomState(0), 100, lambda: next(answers))
    assert means.predict(BLOBS).shape == (200,)
    assert next(answers, None) is None


@pytest.mark.parametrize("n_threads", [1, 3])
def test_in_parts(n_threads: int) -> None:
    rows = torch.from_numpy(BLOBS)
    expected = cluster_in_parts(rows, 4, np.random.RandomState(5))
    np.testing.assert_array_equal(cluster_in_parts(rows, 4, np.random.RandomState(5), n_threads), expected)
    assert np.unique(expected).size == 4
