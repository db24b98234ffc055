"""Progress bars that start no thread."""

from __future__ import annotations

from typing import Any

from tqdm.auto import tqdm


class Bar(tqdm):  # type: ignore[misc,type-arg,unused-ignore]
    """A bar of tqdm without its monitor, a thread that tqdm starts even for bars that are not shown.

    Examples
    --------
    >>> from prodige.bars import Bar
    >>> with Bar(total=2, disable=True) as bar:
    ...     bar.monitor_interval
    0
    """

    monitor_interval: Any = 0
