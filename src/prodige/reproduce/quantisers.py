"""Codes of vectors by faiss: product quantisation, with a rotation or without, and sums of codewords.

A vector is a few codes, each the number of a codeword in a book of its own. Words are parts of the vector (PQ, and OPQ
after a rotation) or are added up (RQ, and LSQ, which improves all words together). Distances are those of the words,
never of the vectors that a query would bring, since none is kept. So rotations are not needed either; books are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.threads import one_thread

KINDS = ("pq", "opq", "rq", "lsq")

# Rounds of learning, below what faiss takes by itself (50; 25 and 16): the others change little and take minutes.
OPQ_ROUNDS = 16
LSQ_ROUNDS = 12

# A book rounded to bytes is stored with its lowest and highest number.
_RANGE_BITS = 2 * 32


@dataclass(frozen=True)
class Coded:
    """Vectors, and what their codes say they are.

    Attributes
    ----------
    vectors, words : ndarray of float32, shape [N, D]
        In the same basis.
    book_bits : int
        Size of all books, of a byte for each number.
    """

    vectors: NDArray[np.float32]
    words: NDArray[np.float32]
    book_bits: int


class Quantiser:
    """Learns codes of one kind for one set of vectors; what was learned once is used again.

    Parameters
    ----------
    kind : {"pq", "opq", "rq", "lsq"}
    vectors : ndarray of float32, shape [N, D]
        Principal coordinates: the first ones are taken where fewer are asked for.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.reproduce.quantisers import Quantiser
    >>> vectors = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    >>> coded = Quantiser("pq", vectors).code(8, 4, 4)
    >>> coded.words.shape, coded.book_bits
    ((500, 8), 1280)
    """

    def __init__(self, kind: str, vectors: NDArray[np.float32], seed: int = 0) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        self.kind = kind
        self.vectors = vectors
        self.seed = seed
        self._learned: dict[tuple[int, int, int], tuple[NDArray[np.float32], NDArray[np.float32]]] = {}

    def width(self, width: int, n_codes: int) -> int:
        """Return how many coordinates are used of so many: parts of vectors are equally long."""
        return width // n_codes * n_codes if self.kind in ("pq", "opq") else width

    def book_bits(self, width: int, n_codes: int, bits: int) -> int:
        """Return the size of the books of such codes."""
        n_words = 1 << bits
        n_numbers = n_words * self.width(width, n_codes) * (1 if self.kind in ("pq", "opq") else n_codes)
        return 8 * n_numbers + n_codes * _RANGE_BITS

    @one_thread()
    def code(self, width: int, n_codes: int, bits: int, in_bytes: bool = False, most_codes: int = 0) -> Coded:
        """Return codes of the first coordinates, with numbers of the books rounded to bytes if that is asked for.

        Parameters
        ----------
        width : int
            Coordinates, of which those that do not divide by the codes are left out.
        n_codes, bits : int
            Codes of a vector, and bits of each.
        in_bytes : bool
        most_codes : int
            Codes that may be asked for later, which are learned at once where that is possible.
        """
        width = self.width(width, n_codes)
        vectors, books = self._learn(width, n_codes, bits, most_codes)
        if in_bytes:
            books = np.concatenate([to_bytes(book) for book in np.split(books, n_codes)])
        coder = self._coder(width, n_codes, bits)
        fill(coder, books)
        words = coder.decode(coder.compute_codes(vectors))
        return Coded(vectors, words, self.book_bits(width, n_codes, bits))

    def _learn(
        self, width: int, n_codes: int, bits: int, most_codes: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors, rotated if need be, and all books one after the other."""
        # Residual books are learned one after the other, so a short code has the first ones of a long code.
        most = max(n_codes, most_codes) if self.kind == "rq" else n_codes
        key = (width, most, bits)
        if key not in self._learned:
            vectors = np.ascontiguousarray(self.vectors[:, :width])
            if self.kind == "opq":
                vectors = self._rotated(vectors, n_codes, bits)
            coder = self._coder(width, most, bits)
            coder.train(vectors)
            self._learned[key] = vectors, books_of(coder)
        vectors, books = self._learned[key]
        return vectors, books[: books.size * n_codes // most]

    def _coder(self, width: int, n_codes: int, bits: int) -> Any:
        faiss = import_faiss()
        kinds = {"rq": faiss.ResidualQuantizer, "lsq": faiss.LocalSearchQuantizer}
        coder = kinds.get(self.kind, faiss.ProductQuantizer)(width, n_codes, bits)
        if self.kind == "lsq":
            coder.train_iters = coder.encode_ils_iters = LSQ_ROUNDS
            coder.nperts = min(coder.nperts, n_codes)
            coder.random_seed = 1 + self.seed
        else:
            coder.cp.seed = 1 + self.seed
            coder.cp.min_points_per_centroid = 1  # fewer items than faiss would like are no reason for a message
        return coder

    def _rotated(self, vectors: NDArray[np.float32], n_codes: int, bits: int) -> NDArray[np.float32]:
        faiss = import_faiss()
        rotation = faiss.OPQMatrix(vectors.shape[1], n_codes)
        rotation.niter = OPQ_ROUNDS
        coder = self._coder(vectors.shape[1], n_codes, bits)
        rotation.pq = coder  # kept alive by its name here: faiss holds a bare pointer
        rotation.train(vectors)
        return np.asarray(rotation.apply_py(vectors))


def books_of(coder: Any) -> NDArray[np.float32]:
    """Return all numbers of the books."""
    faiss = import_faiss()
    return np.array(faiss.vector_to_array(coder.centroids if hasattr(coder, "centroids") else coder.codebooks))


def fill(coder: Any, books: NDArray[np.float32]) -> None:
    """Give a coder books that were learned before."""
    faiss = import_faiss()
    if hasattr(coder, "centroids"):
        faiss.copy_array_to_vector(books, coder.centroids)
    else:
        faiss.copy_array_to_vector(books, coder.codebooks)
        coder.is_trained = True


def to_bytes(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers as bytes between the lowest and the highest keep them.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.reproduce.quantisers import to_bytes
    >>> to_bytes(np.array([0.0, 0.4, 255.0], dtype=np.float32))
    array([  0.,   0., 255.], dtype=float32)
    """
    low = numbers.min()
    step = (numbers.max() - low) / 255 or np.float32(1)
    return np.asarray(low + np.rint((numbers - low) / step) * step, dtype=np.float32)


def import_faiss() -> Any:
    """Return faiss, or say how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError("codes of vectors need faiss; pip install 'prodige[ann]'", name="faiss") from error
    return faiss
