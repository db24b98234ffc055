"""Words and their numbers: how a text becomes a sequence of token ids.

A text is lower-cased, freed from HTML, and cut into the words that a pattern finds. The most frequent ones get ids in
order of frequency, so that cutting a vocabulary off at some id keeps the words that matter most; all others share the
id of the unknown.
"""

from __future__ import annotations

import html
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prodige._validation import MAX_INT32, check_integer

PADDING = 0
UNKNOWN = 1
SPECIAL = ("<pad>", "<unk>")

# Signs that belong to the letter before them, which Python does not count among the letters: accents, Hebrew and
# Arabic vowels, and the vowels of South and South-East Asia.
MARKS = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e3a\u0e47-\u0e4e\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
)

# Signs that carry a mood.
MOODS = r"!?\u2600-\u27bf\U0001f300-\U0001faff"

# Letters and digits with the marks on them, and apostrophes inside (don't, l'été); signs that carry a mood, one by one.
PATTERN = rf"[^\W_]+(?:(?:[{MARKS}]|'(?=[^\W_]))[^\W_]*)*|[{MOODS}]"

# A letter must follow at once, and the end must be near: "a < b" and "<3" are no tags.
_TAG = re.compile(r"<[/!]?[a-z-][^<>]{0,500}>")

# As much of an offending value as a message shows.
_SHOWN = 40


class Vocabulary:
    """Tokens with ids and counts: 0 is padding, 1 is any unknown token, then come tokens by falling frequency.

    Usually made by :meth:`build`. It does not change once it is made.

    Parameters
    ----------
    tokens : sequence of str
        Different ones, without padding and unknown: they get the ids from 2 on.
    counts : array-like of int, optional
        How often each occurs; 0 where nothing is known.
    unknown_count : int
        How often tokens occur that are not among them.
    pattern : str
        Regular expression of a token, without groups; it sees lower-case text. The default finds words of letters and
        digits in any script that separates words, keeps apostrophes inside them, and takes "!", "?" and each emoji as
        tokens of their own. Other punctuation is dropped.

    Attributes
    ----------
    tokens : tuple of str
        By id, beginning with ``"<pad>"`` and ``"<unk>"``.
    counts : ndarray of int64, shape [len]
        By id; 0 for padding.
    pattern : str

    Examples
    --------
    >>> from prodige.text.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary.build(["I don't know.<br />You know!", "You know, I know"], max_size=3)
    >>> vocabulary
    Vocabulary(5 tokens: <pad>, <unk>, know, i, you)
    >>> vocabulary.counts
    array([0, 2, 4, 2, 2])
    >>> ids, offsets = vocabulary.encode(["You and I", "", "KNOW"])
    >>> ids, offsets
    (array([4, 1, 3, 2], dtype=int32), array([0, 3, 3, 4]))
    """

    def __init__(
        self,
        tokens: Sequence[str],
        counts: ArrayLike | None = None,
        unknown_count: int = 0,
        pattern: str = PATTERN,
    ) -> None:
        self._find = compile_pattern(pattern).findall
        self.pattern = pattern
        self.tokens = (*SPECIAL, *check_tokens(tokens))
        self.counts = np.zeros(len(self.tokens), dtype=np.int64)
        self.counts[UNKNOWN] = check_integer("unknown_count", unknown_count, 0, 2**62)
        if counts is not None:
            self.counts[len(SPECIAL) :] = check_counts(counts, len(self.tokens) - len(SPECIAL))
        self.counts.flags.writeable = False
        # Padding is left out: what a text says is never padding.
        self._ids = {token: number for number, token in enumerate(self.tokens) if number != PADDING}

    @classmethod
    def build(
        cls, texts: Iterable[str], max_size: int = 32_000, min_count: int = 1, pattern: str = PATTERN
    ) -> Vocabulary:
        """Return the most frequent tokens of texts.

        Parameters
        ----------
        texts : iterable of str
            At least one must have a token.
        max_size : int
            Tokens to keep beside padding and unknown. Of those equally frequent, the first in the order of Unicode
            stay, so that the order of the texts does not matter.
        min_count : int
            Tokens that occur less often are left out.
        pattern : str
            See :class:`Vocabulary`.

        Raises
        ------
        TypeError
            If something among the texts is not text.
        ValueError
            If there are no texts, or no tokens in them.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> Vocabulary.build(["to be or not to be"], min_count=2).tokens
        ('<pad>', '<unk>', 'be', 'to')
        """
        documents = check_texts(texts)
        check_integer("max_size", max_size, 1, MAX_INT32 - len(SPECIAL))
        check_integer("min_count", min_count, 1, 2**62)
        find = compile_pattern(pattern).findall
        found: Counter[str] = Counter()
        for text in documents:
            found.update(find(clean(text)))
        total = found.total()
        for token in SPECIAL:
            del found[token]  # what looks like one of the two is unknown
        order = sorted((-count, token) for token, count in found.items() if count >= min_count)[:max_size]
        if not order:
            raise ValueError(
                f"texts have no token to learn: {total} were found in {len(documents)} texts, none of them "
                f"{min_count} times or more; give other texts, a lower min_count or another pattern"
            )
        counts = np.array([-count for count, _ in order], dtype=np.int64)
        return cls([token for _, token in order], counts, total - int(counts.sum()), pattern)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids and token not in SPECIAL

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        same_words = self.tokens == other.tokens and self.pattern == other.pattern
        return same_words and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.tokens, self.pattern))

    def __repr__(self) -> str:
        shown = ", ".join(self.tokens[:6]) + (", ..." if len(self) > 6 else "")
        return f"Vocabulary({len(self)} tokens: {shown})"

    def index(self, token: str) -> int:
        """Return the id of a token, that of the unknown where it has none; ``token in vocabulary`` tells them apart.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary(["cat", "dog"])
        >>> vocabulary.index("dog"), vocabulary.index("cow"), "cow" in vocabulary
        (3, 1, False)
        """
        if not isinstance(token, str):
            raise TypeError(f"token must be text, got {token!r}; ids need no index")
        return self._ids.get(token, UNKNOWN)

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of one text, known or not.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> Vocabulary(["cat"]).tokenize("Rock &amp; Roll isn't <b>dead</b>! (10/10)")
        ['rock', 'roll', "isn't", 'dead', '!', '10', '10']
        """
        return [str(token) for token in self._find(clean(check_texts([text])[0]))]

    def encode(self, texts: Iterable[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the ids of all texts, one after the other.

        Parameters
        ----------
        texts : iterable of str
            Of any length; a text without tokens gets no ids.

        Returns
        -------
        ids : ndarray of int32
        offsets : ndarray of int64, shape [N + 1]
            Text i has ``ids[offsets[i]:offsets[i + 1]]``.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> Vocabulary(["cat", "dog"]).encode(["cat dog", "cow"])
        (array([2, 3, 1], dtype=int32), array([0, 2, 3]))
        """
        documents = check_texts(texts)
        offsets = np.zeros(len(documents) + 1, dtype=np.int64)
        ids = array("i")
        get, find = self._ids.get, self._find
        for place, text in enumerate(documents, start=1):
            ids.extend(map(get, find(clean(text)), repeat(UNKNOWN)))
            offsets[place] = len(ids)
        return np.array(ids, dtype=np.int32), offsets

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as data that JSON can hold; :meth:`from_dict` reads it.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> data = Vocabulary(["cat"], [3], unknown_count=1).to_dict()
        >>> data["tokens"], data["counts"], data["unknown_count"]
        (['cat'], [3], 1)
        """
        return {
            "tokens": list(self.tokens[len(SPECIAL) :]),
            "counts": self.counts[len(SPECIAL) :].tolist(),
            "unknown_count": int(self.counts[UNKNOWN]),
            "pattern": self.pattern,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Vocabulary:
        """Return the vocabulary that :meth:`to_dict` described.

        Examples
        --------
        >>> from prodige.text.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary(["cat", "dog"], [3, 1], unknown_count=7)
        >>> Vocabulary.from_dict(vocabulary.to_dict()) == vocabulary
        True
        """
        fields = {"tokens", "counts", "unknown_count", "pattern"}
        if not isinstance(data, dict) or set(data) != fields:
            shown = sorted(data) if isinstance(data, dict) else data
            raise ValueError(f"data must have the fields {', '.join(sorted(fields))}, got {shorten(shown)}")
        return cls(**data)


def clean(text: str) -> str:
    """Return a text in lower case without HTML and with plain apostrophes.

    Examples
    --------
    >>> from prodige.text.vocabulary import clean
    >>> clean("So good<br /><br />I didn’t sleep &gt; 2h")
    "so good  i didn't sleep > 2h"
    """
    if "&" in text:
        text = html.unescape(text)
    text = text.lower()
    if "<" in text:
        text = _TAG.sub(" ", text)
    return text.replace("\u2019", "'")


# -- checks ----------------------------------------------------------------------------------------------------------


def check_texts(texts: Any, name: str = "texts") -> list[str]:
    """Return texts as a list, after making sure that each of them is text.

    Examples
    --------
    >>> from prodige.text.vocabulary import check_texts
    >>> check_texts(["fine", float("nan")])
    Traceback (most recent call last):
        ...
    TypeError: texts[1] = nan is of type float, not text; replace what is missing, by "" for example
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} must be a list of texts, got a single one, {shorten(texts)}; pass [text]")
    if getattr(texts, "ndim", 1) != 1:  # a table of pandas would give the names of its columns
        raise ValueError(f"{name} must be one-dimensional, got shape {texts.shape}; pass one column")
    if not isinstance(texts, Iterable):
        raise TypeError(f"{name} must be a list of texts, got {shorten(texts)}")
    documents = list(texts)
    if not documents:
        raise ValueError(f"{name} must have at least one text, got none")
    for place, text in enumerate(documents):
        if not isinstance(text, str):
            raise TypeError(
                f"{name}[{place}] = {shorten(text)} is of type {type(text).__name__}, not text; "
                + ("decode it first" if isinstance(text, bytes) else 'replace what is missing, by "" for example')
            )
    return documents


def check_tokens(tokens: Any) -> list[str]:
    """Return different tokens as a list."""
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise TypeError(f"tokens must be a list of text, got {shorten(tokens)}")
    words = list(tokens)
    seen: dict[str, int] = dict(zip(SPECIAL, repeat(-1)))
    for place, token in enumerate(words):
        if not isinstance(token, str):
            raise TypeError(f"tokens[{place}] = {shorten(token)} is of type {type(token).__name__}, not text")
        if seen.setdefault(token, place) != place:
            first = "stands for padding or unknown" if token in SPECIAL else f"is also tokens[{seen[token]}]"
            raise ValueError(f"tokens[{place}] = {shorten(token)} {first}; tokens must be different")
    return [str(token) for token in words]  # text of numpy is not what JSON knows


def check_counts(counts: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return counts of ``n`` tokens."""
    numbers = np.asarray(counts) if n else np.zeros(np.shape(counts), dtype=np.int64)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"counts must have {n} whole numbers, one for each token, got shape {numbers.shape} and {numbers.dtype}"
        )
    if n and numbers.min() < 0:
        raise ValueError(f"counts[{numbers.argmin()}] = {numbers.min()} is below 0: a token occurs or does not")
    return numbers.astype(np.int64)


def compile_pattern(pattern: Any) -> re.Pattern[str]:
    """Return a pattern ready to find tokens, after making sure that it finds whole ones."""
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"pattern must be a regular expression, got {pattern!r}: {error}") from None
    if not isinstance(pattern, str):
        raise TypeError(f"pattern must be text, got {pattern!r}")
    if compiled.groups:
        raise ValueError(f"pattern must have no groups, got {pattern!r}; write (?:...) instead of (...)")
    if compiled.match(""):
        raise ValueError(f"pattern must not match nothing, got {pattern!r}; write + instead of *")
    return compiled


def shorten(value: Any) -> str:
    """Return what a message shows of a value."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


__all__ = ["PADDING", "PATTERN", "SPECIAL", "UNKNOWN", "Vocabulary", "check_texts"]
