"""The data sets of the paper, ready for use.

:func:`load` and :func:`load_interactions` look in a folder of yours, then in the cache, then at the original public
source.
"""

from prodige.datasets.loading import INTERACTIONS, NAMES, Dataset, Interactions, load, load_interactions

__all__ = ["INTERACTIONS", "NAMES", "Dataset", "Interactions", "load", "load_interactions"]
