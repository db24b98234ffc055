"""Rows for a compressor: read whole where they fit, by blocks where a fit sees only a sample of them.

What a fit will take is known as soon as the shape of the data is, so it is said before it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from prodige.cli.matrices import check_numbers, read_matrix
from prodige.metric.evaluation import Report, evaluate, evaluate_blocks
from prodige.metric.sources import MappedSource, Source, open_source
from prodige.metric.space import Space

if TYPE_CHECKING:
    from prodige.cli.compress import Answers
    from prodige.compression.compressor import DistanceCompressor
    from prodige.compression.memory import Estimate

# Files that can be read by blocks.
_IN_BLOCKS = (".npy", ".parquet")

# Items whose distances to all others are compared where data are read by blocks.
_N_SOURCES = 256

# Of fits that take less nothing is said beforehand, in seconds.
_QUICK = 2.0


class Rows(NamedTuple):
    """Data for a fit, what was left out on the way, and what the fit takes where that is worth saying."""

    X: Any
    notes: list[str]
    needs: Estimate | None


def read_rows(path: Path, key: str | None, normalized: bool, settings: Mapping[str, Any]) -> Rows:
    """Read data for a fit: as an array or a sparse matrix, or by blocks where the fit is one of a sample.

    Parameters
    ----------
    path : Path
        As of :func:`prodige.cli.matrices.read_matrix`.
    key : str, optional
    normalized : bool
        Whether rows are to be scaled to length 1.
    settings : mapping
        Parameters of :class:`prodige.DistanceCompressor`.
    """
    source = large_source(path, settings)
    if source is not None:
        rows: Any = MappedSource(source, unit_length) if normalized else source
        return Rows(rows, [], needs_of(source.n_items, source.n_features, settings))
    X, notes = read_matrix(path, key)
    needs = None
    if settings["structure"] != "graph" and settings["n_hubs"] == "auto" and settings["method"] != "l0":
        needs = needs_of(X.shape[0], X.shape[1], settings)
    return Rows(unit_length(X) if normalized else X, notes, None if needs is None or needs.seconds < _QUICK else needs)


def large_source(path: Path, settings: Mapping[str, Any]) -> Source | None:
    """Return the rows of a file that a fit sees only some of; None where it sees all, or cannot do with less."""
    wants_graph = settings["structure"] == "graph" or settings["n_hubs"] != "auto" or settings["method"] == "l0"
    if path.suffix.lower() not in _IN_BLOCKS or wants_graph or settings["metric"] == "precomputed":
        return None
    try:
        source = open_source(path)
    except (ValueError, OSError, EOFError):
        return None  # whoever reads all of it says what is wrong
    is_whole = needs_of(source.n_items, source.n_features, settings).is_whole
    return None if is_whole or not is_numeric(source) else source


def is_numeric(source: Source) -> bool:
    """Whether rows are numbers, as far as one of them tells."""
    try:
        check_numbers(np.asarray(source.take(np.zeros(1, dtype=np.int64))))
    except ValueError as error:
        return "dtype" not in str(error)  # one that is not finite is found with its block and row
    return True


def needs_of(n_items: int, n_features: int, settings: Mapping[str, Any]) -> Estimate:
    """Return what a fit takes."""
    from prodige.compression.memory import estimate_memory

    names = ("numbers_per_item", "bits_per_item", "objective", "memory_limit", "n_jobs")
    return estimate_memory(n_items, n_features, **{name: settings[name] for name in names})


def unit_length(rows: Any) -> Any:
    """Return rows scaled to length 1."""
    from sklearn.preprocessing import normalize

    return normalize(rows)


def compare(model: Answers, X: Any, compressor: DistanceCompressor, k: int) -> Report:
    """Compare the distances of a model with those of the data it was fitted to."""
    seed, n_jobs = compressor.random_state, compressor.n_jobs
    if not isinstance(X, Source):
        return evaluate(model, Space(X, compressor.metric, n_jobs=n_jobs), k=k, random_state=seed)
    random = check_random_state(seed)
    sources = np.sort(random.permutation(X.n_items)[:_N_SOURCES])
    space = Space(X.take(sources), compressor.metric, n_jobs=n_jobs, parameters=compressor._parameters)
    return evaluate_blocks(model, X, space, sources, k, random)
