"""Ranks: processes that fit one model together, by ``torch.distributed``, and end up with the same bits as one alone.

The work is cut into parts whose number depends on the data and never on the processes. Each rank does the parts that
are next to each other in its share, and what comes out is put together in the order of the parts. So nobody can tell
from the result how many ranks there were. Sums in floating point depend on the order of adding; they are made along one
binary tree over all parts, of which a rank adds up whole branches before it sends them (:meth:`Ranks.add`).

Ranks move in step. Every exchange begins with a word from each of them on how it fares: if one has failed, all learn
why and end; if Ctrl-C was pressed at one, all hear it there and then, at the same place of the program. A rank that is
slow only makes the others wait. One that is gone, as after ``kill -9``, breaks the connection, which is told as such.

Processes of a group trust each other, as those of ``torch.distributed`` do anyway: what they send is pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prodige.interrupts import deferred
from prodige.threads import in_parts

if TYPE_CHECKING:
    import torch

Part = TypeVar("Part")
Result = TypeVar("Result")
Floats = NDArray[np.float64]

# What a rank says of itself before an exchange.
_WELL, _INTERRUPTED, _FAILED = range(3)

# The most parts, which is also the most ranks that a fit can be shared by, and the least items of one.
_MOST_PARTS = 32
_LEAST_ITEMS = 256

# Parts whose sums are in memory at a time; a power of two, so that the order of sums is that of the whole tree.
_LEAVES = 4


class RankError(OSError):
    """Another process of the group failed or is gone; the message says which and why, as far as it is known."""


class SharedInterrupt(KeyboardInterrupt):
    """Ctrl-C at one of the ranks, raised on all of them at the same place."""


class Ranks:
    """The processes of a group, in order; one alone where there is no group.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        Of any backend: tensors are sent from where it wants them.

    Attributes
    ----------
    rank, size : int
        Which of them this process is, and how many there are.
    n_sent : int
        Bytes that this process has sent to each of the others.

    Examples
    --------
    >>> from prodige.ranks import Ranks
    >>> alone = Ranks()
    >>> alone.rank, alone.size, alone.in_parts(lambda part: part**2, [1, 2, 3])
    (0, 1, [1, 4, 9])
    """

    def __init__(self, group: Any = None) -> None:
        self.rank, self.size, self.n_sent = 0, 1, 0
        self._group = group
        self._interrupts: list[int] = []
        if group is not None:
            import torch.distributed as dist

            check_group(group)
            self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    @contextmanager
    def together(self) -> Iterator[Ranks]:
        """Keep ranks in step for a while: an error on one of them ends all, and so does Ctrl-C.

        Examples
        --------
        >>> from prodige.ranks import Ranks
        >>> with Ranks().together() as ranks:
        ...     ranks.gather("well")
        ['well']
        """
        if self.size == 1:
            yield self
            return
        with deferred() as self._interrupts:
            try:
                yield self
                self.gather(None)  # nobody leaves before all have come as far
            except (RankError, SharedInterrupt):
                raise  # known to all, or nobody is left to tell
            except (Exception, KeyboardInterrupt) as error:
                self._tell(f"{type(error).__name__}: {error}")
                raise
            finally:
                self._interrupts = []

    # -- what is shared ----------------------------------------------------------------------------------------------

    def gather(self, value: Result) -> list[Result]:
        """Return what each rank has, in their order.

        Raises
        ------
        RankError
            If one of them has failed or is gone.
        SharedInterrupt
            If Ctrl-C was pressed at one of them.
        """
        if self.size == 1:
            return [value]
        return [pickle.loads(data) for data in self._exchange(pickle.dumps(value, protocol=5))]

    def first(self, make: Callable[[], Result]) -> Result:
        """Return what the first rank makes; others wait for it."""
        return self.gather(make() if self.rank == 0 else None)[0]  # type: ignore[return-value]

    def any(self, is_so: bool) -> bool:
        """Return whether something is so on any rank."""
        return any(self.gather(is_so))

    # -- shares of the work ------------------------------------------------------------------------------------------

    def share(self, n_parts: int) -> range:
        """Return the parts that this rank does: as many as any other, or one less.

        Examples
        --------
        >>> from prodige.ranks import Ranks
        >>> Ranks().share(4)
        range(0, 4)
        """
        return range(n_parts * self.rank // self.size, n_parts * (self.rank + 1) // self.size)

    def in_parts(self, function: Callable[[Part], Result], parts: Sequence[Part], n_threads: int = 1) -> list[Result]:
        """Return what a function makes of each part, in their order; each rank does some of them, on its threads."""
        mine = in_parts(function, [parts[number] for number in self.share(len(parts))], n_threads)
        return [result for results in self.gather(mine) for result in results]

    def add(self, function: Callable[[int], Floats], n_parts: int, n_threads: int = 1) -> Floats:
        """Return the sum of what a function makes of each part, with the same bits for any number of ranks and threads.

        Parameters
        ----------
        function : callable
            Makes an array of the number of a part; always of the same shape.
        n_parts : int
            A power of two.
        n_threads : int
            Of this rank.

        Examples
        --------
        >>> import numpy as np
        >>> from prodige.ranks import Ranks
        >>> Ranks().add(lambda part: np.array([1.0, part]), 4)
        array([4., 6.])
        """
        mine = self.share(n_parts)
        branches = {
            ends: add_leaves(function, *ends, n_threads) for ends in whole_branches(mine.start, mine.stop, 0, n_parts)
        }
        found = {ends: total for some in self.gather(branches) for ends, total in some.items()}
        return add_branch(found, 0, n_parts)

    # -- the exchange ------------------------------------------------------------------------------------------------

    def _exchange(self, data: bytes) -> list[bytes]:
        """Return the bytes of all ranks, after all have said that they are well."""
        state = _INTERRUPTED if self._interrupts else _WELL
        words = self._words(state, len(data))
        if any(word[0] == _FAILED for word in words):
            self._interrupts.clear()
            reasons = self._bytes(b"", words)
            raise RankError("; ".join(f"rank {r} failed: {why.decode()}" for r, why in enumerate(reasons) if why))
        if any(word[0] == _INTERRUPTED for word in words):
            self._interrupts.clear()
            raise SharedInterrupt
        return self._bytes(data, words)

    def _tell(self, reason: str) -> None:
        """Tell the others why this rank ends, when they next ask."""
        try:
            data = reason.encode()
            self._bytes(data, self._words(_FAILED, len(data)))
        except RankError:
            pass  # they are gone already, for a reason of their own

    def _words(self, state: int, n_bytes: int) -> list[list[int]]:
        """Return what each rank says of itself, and how many bytes it has to send."""
        import torch

        word = torch.tensor([state, n_bytes], dtype=torch.int64)
        words: list[list[int]] = [word.tolist() for word in self._gather(word)]
        if any(state == _FAILED for state, _ in words):  # only they have something to say
            words = [[state, n_bytes if state == _FAILED else 0] for state, n_bytes in words]
        return words

    def _bytes(self, data: bytes, words: list[list[int]]) -> list[bytes]:
        """Return the bytes of each rank; all send as many as the one that has most."""
        import torch

        sizes = [n_bytes for _, n_bytes in words]
        padded = torch.zeros(max(max(sizes), 1), dtype=torch.uint8)
        mine = np.frombuffer(data, np.uint8)[: sizes[self.rank]]
        padded.numpy()[: mine.size] = mine
        return [found.numpy()[:size].tobytes() for found, size in zip(self._gather(padded), sizes, strict=True)]

    def _gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return a tensor of each rank, by way of the device that the backend works on."""
        import torch
        import torch.distributed as dist

        device = torch.device("cuda") if dist.get_backend(self._group) == "nccl" else torch.device("cpu")
        sent = tensor.to(device)
        found = [torch.empty_like(sent) for _ in range(self.size)]
        self.n_sent += sent.numel() * sent.element_size()
        try:
            dist.all_gather(found, sent, group=self._group)
        except RuntimeError as error:
            raise RankError(
                f"rank {self.rank} lost the connection to another one, which ended or cannot be reached "
                f"({str(error).splitlines()[0]}); start all again, from a checkpoint if there is one"
            ) from error
        return [one.cpu() for one in found]


# One process by itself, which has nobody to wait for.
ALONE = Ranks()


def item_parts(n_items: int) -> list[slice]:
    """Return the parts that items are cut into: a power of two of them, as even as can be, whatever works on them.

    Examples
    --------
    >>> from prodige.ranks import item_parts
    >>> item_parts(1200)
    [slice(0, 300, None), slice(300, 600, None), slice(600, 900, None), slice(900, 1200, None)]
    """
    n_parts = 1
    while 2 * n_parts <= min(_MOST_PARTS, n_items // _LEAST_ITEMS):
        n_parts *= 2
    return [slice(n_items * part // n_parts, n_items * (part + 1) // n_parts) for part in range(n_parts)]


def whole_branches(begin: int, end: int, low: int, high: int) -> list[tuple[int, int]]:
    """Return the largest branches of a binary tree over ``low`` to ``high`` whose leaves are ``begin`` to ``end``.

    Examples
    --------
    >>> from prodige.ranks import whole_branches
    >>> whole_branches(3, 8, 0, 8)
    [(3, 4), (4, 8)]
    """
    if end <= low or high <= begin:
        return []
    if begin <= low and high <= end:
        return [(low, high)]
    middle = (low + high) // 2
    return whole_branches(begin, end, low, middle) + whole_branches(begin, end, middle, high)


def add_leaves(function: Callable[[int], Floats], begin: int, end: int, n_threads: int) -> Floats:
    """Return the sum over a branch of the tree, a few leaves in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.ranks import add_leaves
    >>> add_leaves(lambda part: np.array([1.0, part]), 0, 16, n_threads=2)
    array([ 16., 120.])
    """
    if end - begin > _LEAVES:
        middle = (begin + end) // 2
        return add_leaves(function, begin, middle, n_threads) + add_leaves(function, middle, end, n_threads)
    leaves = in_parts(function, range(begin, end), n_threads)
    return add_branch(
        {(part, part + 1): leaf for part, leaf in zip(range(begin, end), leaves, strict=True)}, begin, end
    )


def add_branch(known: dict[tuple[int, int], Floats], begin: int, end: int) -> Floats:
    """Return the sum over a branch of the tree, from those of its branches that are known.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.ranks import add_branch
    >>> add_branch({(0, 2): np.array([1.0]), (2, 3): np.array([2.0]), (3, 4): np.array([4.0])}, 0, 4)
    array([7.])
    """
    if (begin, end) in known:
        return known[begin, end]
    middle = (begin + end) // 2
    return add_branch(known, begin, middle) + add_branch(known, middle, end)


def check_group(group: Any) -> None:
    """Refuse what is no process group, or one that this process is not in."""
    import torch.distributed as dist

    if not dist.is_available() or not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            f"process_group must be a group of torch.distributed that this process is in, got {group!r}; give "
            "torch.distributed.group.WORLD after torch.distributed.init_process_group"
        )
