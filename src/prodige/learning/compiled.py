"""Graphs inside of ``torch.compile``: an operator that it takes as it is.

A search is native code, and what it does depends on numbers: ``torch.compile`` cannot look into it. As an operator of
torch it need not. It is told the shape of what comes out, and which operator is the backward pass; so a network with a
graph in it is one piece for it (``fullgraph=True``), forward and backward.

An operator gets tensors and numbers only. It finds its module by a number that the module carries
(:class:`Operable`), and the backward pass finds what the forward pass has seen by a *ticket*. The last few are kept
for that; where one is gone, as at a second backward pass, the search is done again with the same draw. Bits are those
of the same module without ``torch.compile``.
"""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self
from weakref import WeakValueDictionary

import torch
from torch import nn

from prodige.learning.autograd import Parameters, Paths, fill, gradient_of_missing

_numbers = itertools.count()
_modules: WeakValueDictionary[int, Operable] = WeakValueDictionary()
# Searches of a module that wait for their backward pass; trees take memory.
_MOST_WAITING = 8

Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Tape(Protocol):
    """What a backward pass needs of its forward pass."""

    def gradients(self, gradient: torch.Tensor, parameters: Parameters, needs: Sequence[bool]) -> Gradients:
        """Return the gradients of parameters by that of the answer: zeros where there is none."""


class Operable(nn.Module, ABC):
    """A module that answers through an operator, which finds it by a number; every copy has one of its own.

    The number is a tensor, so that one compiled program serves all modules of the same shapes.
    """

    _number: torch.Tensor
    _waiting: dict[int, Tape]

    def __init__(self) -> None:
        super().__init__()
        self._enroll()

    def _enroll(self) -> None:
        number = next(_numbers)
        _modules[number] = self
        self._number, self._waiting = torch.tensor(number), {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._enroll()

    @abstractmethod
    def _answer(
        self, inputs: Sequence[torch.Tensor], parameters: Parameters, seed: int | None, learning: bool
    ) -> tuple[torch.Tensor, Tape | None]:
        """Return the answer, and what its backward pass needs."""

    @abstractmethod
    def _holding(self, inputs: Sequence[torch.Tensor], parameters: Parameters, again: bool) -> Self:
        """Return this module, or one aside of it where tensors are not its own, or to answer once more."""

    @abstractmethod
    def draw_seed(self) -> int | None:
        """Return what the next random graphs are drawn by; None where nothing is random."""


class Ticket(NamedTuple):
    """What tells a backward pass of its forward pass.

    Attributes
    ----------
    number : int
        Of the answer.
    seed : int
        Of the random graphs; -1 where nothing was drawn.
    """

    number: int
    seed: int


def call(
    module: Operable, inputs: Sequence[torch.Tensor], parameters: Parameters, shape: Sequence[int]
) -> torch.Tensor:
    """Return what a module answers, of a shape that is known beforehand, by the operator."""
    answer: torch.Tensor = _call(inputs, *parameters, module._number, shape, torch.is_grad_enabled())[0]
    return answer


@torch.library.custom_op(
    "prodige::call",
    mutates_args=(),
    schema="(Tensor[] inputs, Tensor theta_w, Tensor theta_b, Tensor unreachable, Tensor module, SymInt[] shape, "
    "bool learning) -> (Tensor, Tensor)",
)
def _call(
    inputs: Sequence[torch.Tensor],
    theta_w: torch.Tensor,
    theta_b: torch.Tensor,
    unreachable: torch.Tensor,
    module: torch.Tensor,
    shape: Sequence[int],
    learning: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    own, parameters = _modules[int(module)], Parameters(theta_w, theta_b, unreachable)
    answering = own._holding(inputs, parameters, again=False)
    seed = answering.draw_seed()
    answer, tape = answering._answer(inputs, parameters, seed, learning)
    ticket = Ticket(next(_numbers), -1 if seed is None else seed)
    if tape is not None:
        own._waiting[ticket.number] = tape
        while len(own._waiting) > _MOST_WAITING:
            own._waiting.pop(next(iter(own._waiting)))
    return answer, torch.tensor(ticket)


@_call.register_fake
def _(
    inputs: Any, theta_w: Any, theta_b: Any, unreachable: Any, module: Any, shape: Any, learning: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    types = (tensor.dtype for tensor in inputs if tensor.is_floating_point())
    dtype = functools.reduce(torch.promote_types, types, theta_w.dtype)
    return theta_w.new_empty(shape, dtype=dtype), theta_w.new_empty((2,), dtype=torch.int64)


@torch.library.custom_op(
    "prodige::call_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor ticket, Tensor[] inputs, Tensor theta_w, Tensor theta_b, Tensor unreachable, "
    "Tensor module, bool[] needs) -> (Tensor, Tensor, Tensor)",
)
def _call_backward(
    gradient: torch.Tensor,
    ticket: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    theta_w: torch.Tensor,
    theta_b: torch.Tensor,
    unreachable: torch.Tensor,
    module: torch.Tensor,
    needs: Sequence[bool],
) -> Gradients:
    own, parameters = _modules[int(module)], Parameters(theta_w, theta_b, unreachable)
    told = Ticket(*ticket.tolist())
    tape = own._waiting.pop(told.number, None)
    if tape is None:
        aside = own._holding(inputs, parameters, again=True)
        _, tape = aside._answer(inputs, parameters, None if told.seed < 0 else told.seed, True)
        assert tape is not None
    return tape.gradients(gradient, parameters, needs)


@_call_backward.register_fake
def _(
    gradient: Any, ticket: Any, inputs: Any, theta_w: Any, theta_b: Any, unreachable: Any, module: Any, needs: Any
) -> Gradients:
    return torch.empty_like(theta_w), torch.empty_like(theta_b), torch.empty_like(unreachable)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    tensors, *parameters, module, _, _ = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1], *parameters, module, *tensors)


def _differentiate(ctx: Any, gradient: torch.Tensor, _: Any) -> tuple[Any, ...]:
    ticket, *parameters, module = ctx.saved_tensors[:5]
    inputs = list(ctx.saved_tensors[5:])
    needs = [bool(need) for need in ctx.needs_input_grad[1:4]]
    found = _call_backward(gradient, ticket, inputs, *parameters, module, needs)
    return [None] * len(inputs), *(one if need else None for one, need in zip(found, needs, strict=True)), *[None] * 3


_call.register_autograd(_differentiate, setup_context=_remember)


class SearchTape(NamedTuple):
    """A search, and where it found no path."""

    search: Paths
    missing: torch.Tensor | None

    def gradients(self, gradient: torch.Tensor, parameters: Parameters, needs: Sequence[bool]) -> Gradients:
        """Return the gradients of parameters by that of the distances."""
        by_w, by_b = self.search.gradients(gradient.contiguous().numpy(), parameters, (needs[0], needs[1]))
        found = [
            torch.zeros_like(parameter) if values is None else torch.from_numpy(values).to(parameter.dtype)
            for values, parameter in zip((by_w, by_b), parameters[:2], strict=True)
        ]
        return found[0], found[1], gradient_of_missing(gradient, self.missing)


def check_dense(sparse: bool) -> None:
    """Refuse sparse gradients, which ``torch.compile`` does not know."""
    if sparse:
        raise ValueError("torch.compile knows no sparse gradients; make the graph with sparse=False, or do not compile")


def are_same(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """Whether all pairs of tensors are the same memory."""
    return all(one.data_ptr() == other.data_ptr() for one, other in pairs)


def read(search: Paths, unreachable: torch.Tensor) -> tuple[torch.Tensor, SearchTape]:
    """Return the distances of a search, and what the backward pass needs."""
    distances, missing = fill(search.read(), unreachable)
    return distances, SearchTape(search, missing)
