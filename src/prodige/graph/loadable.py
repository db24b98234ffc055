"""Loadable: what all models with a kind of file of their own have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from prodige.graph import container
from prodige.graph.atomic import StrPath
from prodige.threads import count_threads


class Loadable(ABC):
    """A model that opens files of one kind.

    A subclass names the kind as ``_kind``, one of :data:`prodige.graph.container.KINDS`, and makes itself of what such
    a file holds.
    """

    _kind: ClassVar[str]

    @classmethod
    def load(cls, path: StrPath, n_jobs: int | None = None) -> Self:
        """Read what ``save`` wrote; nothing in the file is run.

        Parameters
        ----------
        path : str or path-like
        n_jobs : int, optional
            Threads; all processors that this process may use when left out.

        Raises
        ------
        prodige.graph.container.FileFormatError
            If it is not a sound file, or holds something else.
        """
        count_threads(n_jobs)
        return container.open_as(path, cls._kind, lambda contents: cls._from_contents(contents, n_jobs))

    @classmethod
    @abstractmethod
    def _from_contents(cls, contents: container.Contents, n_jobs: int | None) -> Self:
        """Return what a file holds; ValueError, TypeError or KeyError if its parts do not fit together."""
