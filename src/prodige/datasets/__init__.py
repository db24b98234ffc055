"""The data sets of the paper, ready for use.

:func:`load` looks in a folder of yours, then in the cache, then at the original public source.
"""

from prodige.datasets.loading import NAMES, Dataset, load

__all__ = ["NAMES", "Dataset", "load"]
