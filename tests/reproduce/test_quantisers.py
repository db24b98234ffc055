"""Codes of vectors against faiss itself."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from prodige.reproduce import quantisers
from prodige.reproduce.quantisers import KINDS, Coded, Quantiser, to_bytes

faiss = pytest.importorskip("faiss")

RNG = np.random.default_rng(2)
VECTORS = (RNG.normal(size=(800, 12)) * np.geomspace(3, 0.5, 12)).astype(np.float32)


def lost(coded: Coded) -> float:
    return float(((coded.vectors - coded.words) ** 2).sum() / (VECTORS**2).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_codes(kind: str) -> None:
    quantiser = Quantiser(kind, VECTORS)
    coded = quantiser.code(12, 4, 4)
    assert coded.vectors.shape == coded.words.shape == (800, 12)
    # A rotation at most.
    np.testing.assert_allclose(np.linalg.norm(coded.vectors, axis=1), np.linalg.norm(VECTORS, axis=1), rtol=1e-4)
    assert np.unique(coded.words, axis=0).shape[0] <= 2**16
    # More codes, and more words, are better; bytes cost little.
    assert lost(quantiser.code(12, 2, 4)) > lost(coded) > lost(quantiser.code(12, 4, 6))
    assert lost(quantiser.code(12, 4, 4, in_bytes=True)) == pytest.approx(lost(coded), rel=0.05)
    other = Quantiser(kind, VECTORS).code(12, 4, 4)
    np.testing.assert_array_equal(other.words, coded.words)


def test_products_are_those_of_faiss() -> None:
    coder = faiss.ProductQuantizer(12, 3, 5)
    coder.cp.seed = 1
    coder.train(VECTORS)
    expected = coder.decode(coder.compute_codes(VECTORS))
    np.testing.assert_allclose(Quantiser("pq", VECTORS).code(12, 3, 5).words, expected, atol=1e-5)


def test_a_rotation_pays() -> None:
    turned = Quantiser("opq", VECTORS).code(12, 3, 5)
    assert lost(turned) < 0.9 * lost(Quantiser("pq", VECTORS).code(12, 3, 5))


def test_short_codes_have_the_first_books_of_long_ones() -> None:
    coder = faiss.ResidualQuantizer(12, 2, 5)
    coder.cp.seed = 1
    coder.train(VECTORS)
    direct = float(((VECTORS - coder.decode(coder.compute_codes(VECTORS))) ** 2).sum() / (VECTORS**2).sum())
    quantiser = Quantiser("rq", VECTORS)
    assert lost(quantiser.code(12, 2, 5, most_codes=6)) == pytest.approx(direct, rel=0.02)
    six = quantiser.code(12, 6, 5, most_codes=6)
    assert len(quantiser._learned) == 1  # nothing was learned again
    assert lost(quantiser.code(12, 7, 5, most_codes=6)) < lost(six)  # longer than foreseen


def test_widths() -> None:
    quantiser = Quantiser("pq", VECTORS)
    coded = quantiser.code(11, 3, 4)  # parts are equally long
    np.testing.assert_array_equal(coded.vectors, VECTORS[:, :9])
    assert Quantiser("rq", VECTORS).code(11, 3, 4).vectors.shape == (800, 11)


def test_size_of_books() -> None:
    # Words of a part have its numbers, words that are added up have all; a range of two floats for each book.
    assert Quantiser("pq", VECTORS).code(11, 3, 4).book_bits == 8 * 16 * 9 + 3 * 64
    assert Quantiser("lsq", VECTORS).book_bits(12, 3, 4) == 8 * 3 * 16 * 12 + 3 * 64


def test_books_in_bytes() -> None:
    numbers = RNG.normal(size=500).astype(np.float32)
    small = to_bytes(numbers)
    assert np.unique(small).size <= 256
    assert np.abs(small - numbers).max() <= np.ptp(numbers) / 255 / 2 + 1e-6
    np.testing.assert_array_equal(to_bytes(np.full(3, 2.0, np.float32)), 2)


def test_unknown_kinds() -> None:
    with pytest.raises(ValueError, match="kind must be one of pq, opq, rq, lsq, got 'ivf'"):
        Quantiser("ivf", VECTORS)


def test_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name == "faiss":
            raise ImportError("No module named 'faiss'", name="faiss")
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'prodige\[ann\]'"):
        quantisers.import_faiss()
