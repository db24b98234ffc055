"""Words of raw texts, found natively: the words of :mod:`prodige.text.vocabulary`, many times as fast."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige import _core
from prodige.text.vocabulary import MARKS, MOODS, check_texts

# Code points, and those that have an upper and a lower case.
_N_POINTS = 0x110000
_N_CASED = 0x20000

_SURROGATES = re.compile(r"[\ud800-\udfff]")


@lru_cache(maxsize=1)
def alphabet() -> _core.Alphabet:
    """Return what is a letter, a mark on one or a sign by itself, and what lower case is, for the native tokeniser.

    It takes a fifth of a second, once in a process.
    """
    every = "".join(map(chr, range(_N_POINTS)))
    kinds = np.zeros(_N_POINTS, dtype=np.uint8)
    # In rising precedence: some signs and marks are letters or digits as well.
    for kind, pattern in ((3, f"[{MOODS}]+"), (2, f"[{MARKS}]+"), (1, r"[^\W_]+")):
        for found in re.finditer(pattern, every):
            kinds[found.start() : found.end()] = kind
    lower = [letter.lower() for letter in every[:_N_CASED]]
    # The one letter that becomes two is known natively; the end of a Greek word is written as its middle.
    points = [ord(small) if len(small) == 1 else point for point, small in enumerate(lower)]
    points[ord("ς")] = ord("σ")
    return _core.Alphabet(kinds, np.array(points, dtype=np.uint32))


def prepare(texts: Any) -> list[str]:
    r"""Return texts as the native tokeniser takes them: without entities of HTML and without halves of pairs of UTF-16.

    Examples
    --------
    >>> from prodige.text.tokens import prepare
    >>> prepare(["Tom &amp; Jerry", "broken \ud800 text"])
    ['Tom & Jerry', 'broken   text']
    """
    documents = [html.unescape(text) if "&" in text else text for text in check_texts(texts)]
    return [text if text.isascii() else _SURROGATES.sub(" ", text) for text in documents]


def tokenize(documents: list[str]) -> tuple[list[str], NDArray[np.int32], NDArray[np.int64]]:
    """Return the different words of texts, and the words of each text.

    Parameters
    ----------
    documents : list of str
        As :func:`prepare` returns them.

    Returns
    -------
    words : list of str
        In the order in which they are met.
    ids : ndarray of int32
        Numbers of words, the texts one after the other.
    offsets : ndarray of int64, shape [N + 1]

    Examples
    --------
    >>> from prodige.text.tokens import tokenize
    >>> words, ids, offsets = tokenize(["To be, or<br>not to be!", "Be it"])
    >>> words, ids.tolist(), offsets.tolist()
    (['to', 'be', 'or', 'not', '!', 'it'], [0, 1, 2, 3, 0, 1, 4, 1, 5], [0, 7, 9])
    """
    return _core.tokenize(documents, alphabet())
