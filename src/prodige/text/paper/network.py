"""TextNetwork: the paper's network over texts, whatever embeds the tokens, and how it is trained.

Tokens become vectors, a convolution of a few filters slides over them, the maximum over positions goes through a ReLU
and a dense layer. Texts need no padding and are not cut: see :mod:`prodige.text.paper.convolution`.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from prodige.progress import Bar, Record
from prodige.text.paper.convolution import PooledConvolution, start

BATCH = 64
# Tokens that a training step does not see, and filters whose answers it does not see.
WORD_DROPOUT = 0.3
FILTER_DROPOUT = 0.5
# Share of the past in the running mean of the weights, which is what is kept of a run.
DECAY = 0.99
# An epoch has at least about so many steps, and on very few texts so many for each of them.
_LEAST_STEPS = 300
_STEPS_PER_TEXT = 2
# Texts are predicted in parts with about so many tokens.
_PART = 2**22


@dataclass(frozen=True)
class Corpus:
    """Encoded texts, one after the other.

    Attributes
    ----------
    tokens : ndarray of int32
    offsets : ndarray of int64, shape [N + 1]
        Text i has ``tokens[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.paper.network import Corpus
    >>> corpus = Corpus(np.array([5, 6, 7], np.int32), np.array([0, 1, 3]))
    >>> corpus.take(np.array([1])).tokens
    array([6, 7], dtype=int32)
    """

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return self.offsets.size - 1

    def take(self, rows: NDArray[np.int64]) -> Corpus:
        """Return some of the texts."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Corpus(self.tokens[places], offsets)


class TextNetwork(nn.Module):
    """Embedding, convolution, maximum over positions, ReLU, dense layer.

    Parameters
    ----------
    embedding : Module
        Called as :class:`torch.nn.Embedding` is; ``num_embeddings`` and ``embedding_dim`` say its size.
    n_classes : int
    n_filters, kernel_size : int
        Of the convolution.
    n_jobs : int, optional
        Threads; all processors that this process may use when left out.
    generator : torch.Generator, optional
        Where the first weights come from; torch's global generator when left out.

    Shapes:
        - input: a :class:`Corpus` of B texts
        - output ``[B, C]``: logits

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from prodige.text.paper.network import Corpus, TextNetwork
    >>> network = TextNetwork(nn.Embedding(10, 4), n_classes=3)
    >>> network(Corpus(np.array([5, 6, 7], np.int32), np.array([0, 1, 3]))).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        embedding: nn.Module,
        n_classes: int,
        n_filters: int = 32,
        kernel_size: int = 5,
        n_jobs: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        n_coordinates = int(embedding.embedding_dim)  # type: ignore[arg-type]
        self.convolution = PooledConvolution(n_coordinates, n_filters, kernel_size, n_jobs, generator)
        self.dense: nn.Linear = nn.utils.skip_init(nn.Linear, n_filters, n_classes)  # type: ignore[no-untyped-call]
        start(self.dense, generator)

    def forward(self, corpus: Corpus, dropout: Dropout | None = None) -> torch.Tensor:
        """Return the logits of texts; with ``dropout``, some tokens and filters are left out."""
        distinct, places = np.unique(corpus.tokens, return_inverse=True)
        vectors = self.embedding(torch.from_numpy(distinct.astype(np.int64)))
        tokens = places.astype(np.int32)
        if dropout is not None:
            vectors = functional.pad(vectors, (0, 0, 0, 1))  # one more row, of zeros, for tokens that are left out
            tokens = dropout.hide(tokens, distinct.size)
        answers = functional.relu(self.convolution(vectors, tokens, corpus.offsets))
        return self.dense(answers if dropout is None else dropout.thin(answers))  # type: ignore[no-any-return]

    @torch.no_grad()
    def predict(self, corpus: Corpus) -> torch.Tensor:
        """Return the logits of any number of texts, shape [N, C]."""
        self.eval()
        vectors = self.embedding(torch.arange(int(self.embedding.num_embeddings)))  # type: ignore[arg-type]
        parts = []
        for rows in split_by_length(corpus.offsets, _PART):
            part = corpus.take(rows)
            parts.append(self.dense(functional.relu(self.convolution(vectors, part.tokens, part.offsets))))
        return torch.cat(parts)


class Dropout:
    """What a training step does not see, from a generator of its own.

    Parameters
    ----------
    random : Generator
    """

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def hide(self, tokens: NDArray[np.int32], replacement: int) -> NDArray[np.int32]:
        """Replace some tokens."""
        hidden = self.random.random(tokens.size, dtype=np.float32) < WORD_DROPOUT
        return np.where(hidden, np.int32(replacement), tokens)

    def thin(self, answers: torch.Tensor) -> torch.Tensor:
        """Set some answers to 0 and raise the others, as :func:`torch.nn.functional.dropout` does."""
        kept = self.random.random(tuple(answers.shape), dtype=np.float32) >= FILTER_DROPOUT
        return answers * (torch.from_numpy(kept) / (1 - FILTER_DROPOUT))


@dataclass
class Examples:
    """Texts with the numbers of their classes."""

    corpus: Corpus
    classes: NDArray[np.int64]


@dataclass
class Training:
    """One run of gradient descent over a network.

    Attributes
    ----------
    train, validation : Examples
        What is learned from, and what tells when to stop.
    class_weight : Tensor, shape [C]
        Weight of each class in the loss.
    n_epochs : int
        At most so many; the rate of learning falls to 0 over them.
    random : Generator
    stage : str
        Name of the run in the history and in the progress bar.
    warm : bool
        Whether the network has been learned before: it is then returned as it was if no epoch improves on it. On a few
        texts, all that follows can be overfitting.
    patience : int
        Epochs without a better validation loss before the run ends.
    verbose : int
    report : callable, optional
        Gets the record of each epoch; returns True to end the run.
    """

    train: Examples
    validation: Examples
    class_weight: torch.Tensor
    n_epochs: int
    random: np.random.Generator
    stage: str
    warm: bool = False
    patience: int = 2
    verbose: int = 0
    report: Callable[[Record], bool] | None = None
    interrupted: bool = field(default=False, init=False)

    def run(self, network: TextNetwork, groups: Sequence[dict[str, Any]]) -> TextNetwork:
        """Train a network in place; return the mean of its weights over the last steps, at its best epoch.

        Ctrl-C ends the run and sets ``interrupted``; what is returned is the best so far, and the mean of the weights
        so far if that was in the first epoch.

        Raises
        ------
        KeyboardInterrupt
            If nothing has been learned yet.

        Parameters
        ----------
        network : TextNetwork
        groups : sequence of dict
            Parameters and rates of learning, as :class:`torch.optim.Adam` takes them.
        """
        optimizer = torch.optim.Adam(groups)
        n_texts = len(self.train.corpus)
        # On a few texts a pass is too short to tell anything by: an epoch then takes several.
        least_steps = min(_LEAST_STEPS, _STEPS_PER_TEXT * n_texts)
        n_passes = max(1, round(least_steps / math.ceil(n_texts / BATCH)))
        n_steps = self.n_epochs * n_passes * math.ceil(n_texts / BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / n_steps))
        average = Average(network)
        best = copy.deepcopy(network) if self.warm else None
        began, waited = time.perf_counter(), 0
        with gradients(), Bar(total=n_steps, desc=self.stage, disable=self.verbose <= 0, unit="step") as bar:
            try:
                least = self.judge(network)[0] if self.warm else math.inf
                for epoch in range(self.n_epochs):
                    losses = [
                        self.step(network, rows, optimizer, schedule, average, bar)
                        for _ in range(n_passes)
                        for rows in batches(self.random.permutation(n_texts))
                    ]
                    validation_loss, accuracy = self.judge(average.network)
                    record = Record(
                        epoch,
                        epoch / self.n_epochs,
                        float(np.mean(losses)),
                        time.perf_counter() - began,
                        stage=self.stage,
                        validation_loss=validation_loss,
                        accuracy=accuracy,
                    )
                    bar.set_postfix(loss=f"{record.loss:.4g}", accuracy=f"{accuracy:.4f}")
                    waited += 1
                    if validation_loss < least:
                        least, waited, best = validation_loss, 0, copy.deepcopy(average.network)
                    if (self.report is not None and self.report(record)) or waited >= self.patience:
                        break
            except KeyboardInterrupt:
                if best is None and not average.n_steps:
                    raise
                self.interrupted = True
        return average.network if best is None else best

    def step(
        self,
        network: TextNetwork,
        rows: NDArray[np.int64],
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler,
        average: Average,
        bar: Bar,
    ) -> float:
        """Learn from one batch; return its loss."""
        network.train()
        logits = network(self.train.corpus.take(rows), Dropout(self.random))
        loss = functional.cross_entropy(logits, torch.from_numpy(self.train.classes[rows]), self.class_weight)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        average.update()
        bar.update()
        return loss.item()

    def judge(self, network: TextNetwork) -> tuple[float, float]:
        """Return loss and accuracy on the validation part."""
        logits, classes = network.predict(self.validation.corpus), torch.from_numpy(self.validation.classes)
        loss = functional.cross_entropy(logits, classes, self.class_weight).item()
        return loss, float((logits.argmax(dim=1) == classes).float().mean())


@contextmanager
def gradients() -> Iterator[None]:
    """Let torch record gradients, and leave it as it was, also where Ctrl-C fell into its own way of doing so.

    Examples
    --------
    >>> import torch
    >>> from prodige.text.paper.network import gradients
    >>> with torch.no_grad(), gradients():
    ...     torch.is_grad_enabled()
    True
    """
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    try:
        yield
    finally:
        torch.set_grad_enabled(before)


class Average:
    """Running mean of a network's weights; its steps differ from each other more than from where they are going."""

    def __init__(self, network: TextNetwork) -> None:
        self.network = copy.deepcopy(network)
        self._pairs = [
            (mine, theirs)
            for mine, theirs in zip(self.network.parameters(), network.parameters(), strict=True)
            if theirs.requires_grad
        ]
        self.n_steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """Take the present weights into the mean, whose memory grows with the number of steps."""
        share = 1 - min(DECAY, (2 + self.n_steps) / (11 + self.n_steps))
        for mine, theirs in self._pairs:
            mine.lerp_(theirs, share)
        self.n_steps += 1


def batches(order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of one batch after the other."""
    for first in range(0, order.size, BATCH):
        yield order[first : first + BATCH]


def split_by_length(offsets: NDArray[np.int64], n_tokens: int) -> list[NDArray[np.int64]]:
    """Return consecutive texts in groups of about ``n_tokens`` tokens."""
    n_texts = offsets.size - 1
    groups = offsets[:-1] // n_tokens
    return np.split(np.arange(n_texts), np.flatnonzero(np.diff(groups)) + 1)
