"""The data sets of the paper, ready for use.

:func:`load`, :func:`load_interactions` and :func:`load_texts` look in a folder of yours, then in the cache, then at the
original public source.
"""

from prodige.datasets.loading import (
    INTERACTIONS,
    NAMES,
    TEXTS,
    Dataset,
    Interactions,
    LabelledTexts,
    load,
    load_interactions,
    load_texts,
)

__all__ = [
    "INTERACTIONS",
    "NAMES",
    "TEXTS",
    "Dataset",
    "Interactions",
    "LabelledTexts",
    "load",
    "load_interactions",
    "load_texts",
]
