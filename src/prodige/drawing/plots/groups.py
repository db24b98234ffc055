"""Groups of items as colours: a scale for real numbers, a colour and a shape each for anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige.drawing.plots.style import GREY, MARKERS, OKABE_ITO, add_legend, color_of, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Groups that can be told apart; the smaller ones beyond are drawn as one.
MOST_GROUPS = len(OKABE_ITO) * len(MARKERS)

# Names in a legend beyond which it would hide the picture.
_MOST_ENTRIES = 28


@dataclass(frozen=True)
class Groups:
    """What colour each item has.

    Attributes
    ----------
    names : list of str
        Of the groups; empty for a scale.
    group : ndarray of int64, shape [N]
        Of each item; -1 for none.
    values : ndarray of float64, shape [N], or None
        On a scale; nan for none.

    Examples
    --------
    >>> from prodige.drawing.plots.groups import Groups
    >>> groups = Groups.of(["b", "a", "b"], n_items=3)
    >>> groups.names, groups.group.tolist()
    (['a', 'b'], [1, 0, 1])
    """

    names: list[str]
    group: NDArray[np.int64]
    values: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, groups: ArrayLike | None, n_items: int) -> Groups:
        """Return what each item belongs to; a single group without a name if none are given."""
        if groups is None:
            return cls([""], np.zeros(n_items, dtype=np.int64))
        # Text goes in as objects: as an array of strings, one long name would make room for it in all others.
        given = groups if isinstance(groups, np.ndarray) else as_array(groups)
        if given.shape != (n_items,):
            raise ValueError(
                f"groups must have one entry for each of the {n_items} items and none for hubs, got shape {given.shape}"
            )
        if given.dtype.kind == "f":
            return cls([], np.zeros(n_items, dtype=np.int64), given.astype(np.float64))
        if given.dtype.kind not in "iub":
            given = np.array([str(name) for name in given.tolist()], dtype=object)
        names, group, counts = np.unique(given, return_inverse=True, return_counts=True)
        shown = [str(name) for name in names.tolist()]
        if len(names) > MOST_GROUPS:
            largest = np.sort(np.argsort(-counts, kind="stable")[: MOST_GROUPS - 1])
            place = np.full(len(names), -1)
            place[largest] = np.arange(largest.size)
            return cls([shown[name] for name in largest], place[group])
        return cls(shown, np.asarray(group, dtype=np.int64))

    def item_colors(self) -> list[Any]:
        """Return the colour of each item."""
        if self.values is not None:
            return list(self._scale().to_rgba(self.values))
        return [color_of(place)[0] if place >= 0 else GREY for place in self.group.tolist()]

    def edge_colors(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> list[str]:
        """Return the colour of each edge: that of the group that both ends are in; nothing where there is but one."""
        if len(self.names) < 2:
            return []
        ends = np.full(max(int(j.max()) + 1, self.group.size), -1)
        ends[: self.group.size] = self.group
        within = np.where(ends[i] == ends[j], ends[i], -1)
        return [color_of(place)[0] if place >= 0 else GREY for place in within.tolist()]

    def draw(self, ax: Axes, where: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[list[Any], list[str]]:
        """Draw the items as points; return what a legend needs."""
        if self.values is not None:
            known = np.isfinite(self.values)
            ax.scatter(where[~known, 0], where[~known, 1], s=sizes[~known], c=GREY, zorder=2, linewidths=0)
            scale = self._scale()
            handle = ax.scatter(
                where[known, 0],
                where[known, 1],
                s=sizes[known],
                c=self.values[known],
                cmap=scale.get_cmap(),
                norm=scale.norm,
                zorder=3,
                linewidths=0,
            )
            return [handle], [""]
        handles, texts = [], []
        for place in range(-1, len(self.names)):
            members = self.group == place
            if not members.any():
                continue
            color, marker = color_of(place) if place >= 0 else (GREY, "o")
            handles.append(
                ax.scatter(
                    where[members, 0],
                    where[members, 1],
                    s=sizes[members],
                    c=color,
                    marker=marker,
                    zorder=3,
                    linewidths=0,
                )
            )
            texts.append("others" if place < 0 else self.names[place])
        return handles, texts

    def explain(self, ax: Axes, handles: list[Any], texts: list[str]) -> None:
        """Add a legend, or a scale beside the picture."""
        from matplotlib.collections import PathCollection

        if self.values is not None and ax.figure is not None:
            ax.figure.colorbar(handles[0], ax=ax, shrink=0.6, pad=0.02)
        entries = [(handle, text) for handle, text in zip(handles, texts, strict=True) if text]
        if not entries:
            return
        legend = add_legend(
            ax,
            [handle for handle, _ in entries][:_MOST_ENTRIES],
            [shorten(text) for _, text in entries][:_MOST_ENTRIES],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            borderaxespad=0.0,
        )
        # Points of a picture with many are too small to show a colour.
        for handle in legend.legend_handles:
            if isinstance(handle, PathCollection):
                handle.set_sizes([36])

    def _scale(self) -> Any:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        assert self.values is not None
        known = self.values[np.isfinite(self.values)]
        ends = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        return ScalarMappable(Normalize(*ends), "cividis")


def as_array(groups: ArrayLike) -> NDArray[Any]:
    """Return groups as numbers where all are, else as text."""
    entries = list(groups)  # type: ignore[arg-type]
    if entries and all(isinstance(entry, (bool, int, float, np.number, np.bool_)) for entry in entries):
        return np.asarray(entries)
    return np.array([str(entry) for entry in entries], dtype=object)
