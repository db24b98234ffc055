r"""The ``.prodige`` file: graphs and models on disk. Nothing in it is trusted, and a reader never sees half of one.

One layout holds everything that is saved, and says what it holds. All numbers are little-endian:

========  ======  ==================================================================================================
offset    bytes
========  ======  ==================================================================================================
0         8       magic, ``\x89PRODIGE``
8         4       format version, uint32: 7 where codes of a product are coded, 4 where it has two sides, else 3
12        4       H, the length of the header, uint32; at most 2**24
16        H       header: one JSON object in ASCII, spaces at its end make H a multiple of 8; from version 7 on without
                  these, as a raw DEFLATE stream with a dictionary (``header.py``), of at most 2**24 bytes inflated
16 + H    ...     arrays, one after the other
...       32      SHA-256 of everything before it
========  ======  ==================================================================================================

The header has exactly these keys:

============  ======================================================================================================
key           what it holds
============  ======================================================================================================
``kind``      ``"graph"``, ``"product"``, ``"compressor"``, ``"recommender"``, ``"text"`` or ``"checkpoint"``
``content``   an object of the kind's own: sizes and settings
``arrays``    a list in the order of the file, each with ``name``, ``dtype``, ``shape``, ``codec`` and ``length``
``metadata``  an object of the writer's own
============  ======================================================================================================

``length`` is in bytes. An array whose ``codec`` is ``"raw"`` is stored as it is in memory, row by row; one of
``"lzma"`` is a raw LZMA2 stream with a dictionary of 8 MiB that unpacks to exactly the bytes that ``dtype`` and
``shape`` say, and to at most 64 times its length. Arrays leave no gap and end at the checksum. Texts are arrays, too:
the lengths of all of them, uint32, then their bytes in UTF-8.

A graph (:mod:`prodige.graph.encoding`) has ``n_vertices``, ``n_items`` and ``n_edges`` in its content. Edges are unique
and ordered by their smaller end ``i``, then by the larger one, ``j``, so equal graphs with equal metadata make equal
files. They are packed (:mod:`prodige.graph.packing`) into arrays of uint8, lowest bit first, each part with zeros up to
the end of its last byte:

==========  ========================================================================================================
array       bits
==========  ========================================================================================================
``degree``  for every vertex as many ones as it has edges to larger ones, and a zero
``j``       ``j_bits`` for each edge: the larger end less ``j_least``
``weight``  ``weight_bits`` for each edge: 0 is ``least``, the highest number ``greatest``, others evenly between them
``local``   edges between items, where they are kept apart
==========  ========================================================================================================

with the numbers named here in the content. Weights of 32 bits are float32 as they are, and have no ``least`` and
``greatest``. Where the content has ``n_local``, so many edges join two items, and ``degree`` and ``j`` are those of the
others. With b the largest number for which ``n_local`` * 2**b is at most ``n_items``, and 0 if there is none, ``local``
has three parts: for every number from 0 to that of the last item without its b low bits as many ones as edges have it
as high bits of their smaller end, and a zero; then the b low bits of all smaller ends; then all larger ends, in as many
bits as the last item needs. Weights are in the order of all edges together.

Where next to no vertex has an edge the content has the three counts alone, and the arrays are ``i`` and ``j``, int32,
and ``weight``, float32, as in all graphs once.

A product of graphs (:mod:`prodige.graph.product_encoding`) has as its content

===============  ===================================================================================================
key              what it holds
===============  ===================================================================================================
``n_items``
``n_vertices``   different places of items; where there are fewer than items, ``places`` says which item is where
``power``        what distances in factors are taken to, 1.0 to 2.0
``gauge``        ``{"name": "power", "exponent": 2.0}``: which root of the sum is the distance, 1.0 to 2.0; named
                 ``"pendant"`` where lengths add to the root instead of the sum
``length_bits``  of the lengths
``factors``      a list: ``[hubs, coordinates, bits]`` of a factor whose hubs have positions; ``[hubs, hubs,
                 coordinates, bits, bits]`` of one of two sides; or the content of a graph
``n_first``      only where a factor has two sides: vertices of the first side; 0 where they are not kept apart
``n_kinds``      only where codes are coded as rows: kinds of rows; or a list, where ``n_first`` is above 0: kinds of
                 rows of either side, and the bytes of those of the first. Lists of hubs in the place of ``hubs`` above
                 then stand for as many factors
===============  ===================================================================================================

and these arrays of uint8, whose parts each have zeros up to the end of their last byte:

=============  =====================================================================================================
array          parts
=============  =====================================================================================================
``codes``      for each factor the hubs of all vertices, in as many bits as the last hub needs; of one hub none
``positions``  for each factor with positions the coordinates of all hubs, hub by hub; for one of two sides the words
               of the first side, then those of the second
``lengths``    those of all vertices, or of the second side where it is kept apart
``places``     the vertices of all items, in as many bits as the last vertex needs, one at least; where that is
               smaller, the numbers of items that share the vertex of an earlier item, ascending, in as many bits as
               the last item needs, then their vertices. Vertices are numbered in the order of their first items
=============  =====================================================================================================

Positions and lengths of 32 bits are float32 as they are. In fewer bits, 1 to 16, they are on a grid: the least number
and a step, both float32, are followed by levels, and a number is least + step * level, computed in float64 and rounded
to float32. A factor of two sides joins hub g of the first to hub h of the second by an edge of length shift - C_g·E_h,
with their words C and E; with U and L the greatest and the least of all products, the shift is (3 U - L) / 2 and a
millionth of the larger of abs(U) and abs(L). Its hubs are numbered through, first side first. Where ``n_first`` is
above 0, all factors have two sides, so many vertices are of the first side and come before the others, and have length
0; ``codes`` has for each factor theirs in as many bits as the last hub of the first side needs, then those of the
others in as many as the last hub of the second side needs, each counted from the first hub of its side. In one factor
at least the first side has two hubs. A factor that is a graph has the arrays of a graph, their names preceded by its
place among the factors and a dot, as in ``0.weight``.

With ``n_kinds`` there is one array in place of three, ``codes``: positions, then lengths, both as above, then one
stream of an arithmetic coder, or one for each side. Positions of 0 bits are even: of these there are least and step
only, and hub h is at level h. Of lengths on a grid there are least and step only as well. For each vertex the stream
has its kind, its codes and, if lengths are on a grid and its side has some, the level of its length. Each is a number
below a size, and is found by halving: with numbers from a up to b left, b not included, whether it is in the upper
half, from (a + b) // 2 on, is one choice between two. The probability of the upper half begins at 1/2; the n-th time
that a choice is met it moves by 2 / (2 n + 1) of the way to 1 or 0 after it, n being 1001 at most. Choices of codes and
levels have a probability for each kind, if there are several, and one for all kinds; when a kind meets a choice for the
first time it begins with that for all, and as if it had been met as often, but 6 times at most. ``rows.cpp`` and
``coder.cpp`` of the core have the arithmetic to the last bit.

A compressor and a recommender keep their graph under ``graph`` in the content, and its arrays among their own.

A text model (:mod:`prodige.text.encoding`) has as its content ``architecture``, ``"ngrams"``, ``class_type``, the type
of its labels, and ``n_classes``, 2 to 256; and these arrays:

============  ======================================================================================================
array         what it holds
============  ======================================================================================================
``vertices``  words, sequences of words and their levels, as one stream of an arithmetic coder, uint8
``numbers``   biases, one with two classes and one for each with more, then the levels, ascending, float32
``classes``   the labels in order: texts, or numbers of the type; dates as int64
============  ======================================================================================================

A checkpoint (:mod:`prodige.compression.checkpoints`) has as its content ``version``, 1; ``settings`` and ``data``,
which say which fit it is of; and ``stages``, an object that says of each stage how far it is. Arrays have the name of
their stage and a dot before their own; ``seed`` is where random numbers were before the fit.

One of the architecture ``"paper"`` has ``parameters`` and ``network`` in its content instead, and keeps its words and
edges in an order that compresses well (:mod:`prodige.text.paper.codec`).

Reading checks every size against that of the file before memory is set aside for it, and compares the checksum before
an array is unpacked or anything is made of the content. The checksum finds accidents; it is no signature, and all that
is read is checked as if it came from an attacker. Versions 1 and 2, which held graphs only, are still read
(:mod:`prodige.graph.legacy`). Every version keeps the first 12 bytes, so that a reader can say what it is looking at.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from prodige.graph import header, legacy
from prodige.graph.atomic import StrPath, as_text, replacing
from prodige.graph.header import Entry, Header, HeaderError
from prodige.graph.reading import (
    DAMAGED,
    DIGEST_BYTES,
    NEWER,
    FileFormatError,
    NewerError,
    Reader,
    open_regular,
    refusal,
)

MAGIC = b"\x89PRODIGE"  # the first byte is no text in any encoding of interest
_PLAIN, _SIDED, _DEFLATED = 3, 4, 7  # earlier readers know the first ones; 5 and 6 were coded, not deflated
VERSION = _DEFLATED
START = struct.Struct("<8sII")  # magic, version, length of the header

# What a file can hold, what that is called, and what opens it.
KINDS = {
    "graph": ("a graph", "Graph"),
    "product": ("a product of graphs", "ProductGraph"),
    "compressor": ("a compressor", "DistanceCompressor"),
    "recommender": ("a recommender", "GraphRecommender"),
    "text": ("a text model", "GraphTextClassifier"),
    "checkpoint": ("a checkpoint of a fit", None),
}

# What to do with a file that is no model.
GOING_ON = "only a fit of the same data goes on from it, given as checkpoint with resume=True or --resume"

# The most bytes of texts in one array.
MAX_TEXTS = 2**32 - 1

# Not from the file, which could ask for a dictionary of any size.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**23}]

Arrays = Mapping[str, NDArray[Any]]
Made = TypeVar("Made")


class Description(NamedTuple):
    """What a file says of itself: all but the arrays."""

    kind: str
    version: int
    n_bytes: int
    content: dict[str, Any]
    metadata: dict[str, Any]


class Contents(NamedTuple):
    """A whole file."""

    kind: str
    version: int
    n_bytes: int
    content: dict[str, Any]
    metadata: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @property
    def description(self) -> Description:
        """All but the arrays."""
        return Description(*self[:-1])


# -- writing ---------------------------------------------------------------------------------------------------------


def write(
    path: StrPath,
    kind: str,
    content: Mapping[str, Any],
    arrays: Arrays,
    metadata: Mapping[str, Any] | None = None,
    compress: bool = False,
) -> None:
    """Write a file; one that is there is replaced in one step, or stays as it was.

    Parameters
    ----------
    path : str or path-like
        Written to exactly here; by custom the name ends in ``.prodige``. The mode of an existing file is kept, a new
        one gets what :func:`open` would give it.
    kind : {"graph", "product", "compressor", "recommender", "text", "checkpoint"}
    content : mapping
        Sizes and settings: what JSON can hold.
    arrays : mapping of str to ndarray
        Numbers, not objects.
    metadata : mapping, optional
        Anything that JSON can hold, under keys that are strings.
    compress : bool
        Whether to compress arrays where that makes them smaller.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from prodige.graph import container
    >>> arrays = {"i": np.array([0], "i4"), "j": np.array([1], "i4"), "weight": np.array([2.5], "f4")}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = f"{directory}/two.prodige"
    ...     container.write(path, "graph", {"n_vertices": 2, "n_items": 2, "n_edges": 1}, arrays, {"by": "Ada"})
    ...     container.read(path).arrays["weight"], container.describe(path).metadata
    (array([2.5], dtype=float32), {'by': 'Ada'})
    """
    name = as_text(path)
    parts = encode(kind, content, arrays, metadata, compress)
    digest = hashlib.sha256()
    with replacing(name) as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def size(
    kind: str,
    content: Mapping[str, Any],
    arrays: Arrays,
    metadata: Mapping[str, Any] | None = None,
    compress: bool = False,
) -> int:
    """Return the bytes of the file that :func:`write` would make.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph import container
    >>> container.size("text", {}, {"words": np.zeros(100, "u1")})
    276
    """
    parts = encode(kind, content, arrays, metadata, compress)
    return sum(len(part) for part in parts) + DIGEST_BYTES


def encode(
    kind: str, content: Mapping[str, Any], arrays: Arrays, metadata: Mapping[str, Any] | None, compress: bool
) -> list[bytes | memoryview]:
    """Return the parts of a file, all but the checksum."""
    entries, parts = [], list[bytes | memoryview]()
    for name, array in arrays.items():
        if array.dtype.name not in header.DTYPES:
            raise TypeError(f"array {name!r} must have numbers, got {array.dtype}")
        data, codec = compressed(little_endian(array)) if compress else (little_endian(array), "raw")
        entries.append(Entry(name, array.dtype.name, array.shape, codec, len(data)))
        parts.append(data)
    text = header.encode(Header(kind, dict(content), entries, header.check_metadata(metadata)))
    version = version_for(content)
    if version >= _DEFLATED:
        text = header.deflate(text)
    return [START.pack(MAGIC, version, len(text)), text, *parts]


def version_for(content: Mapping[str, Any]) -> int:
    """Return the version that a reader of some content has to know.

    Products of two sides came with version 4, coded rows with version 5, those of two sides with version 6, and the
    deflated headers of both with version 7.

    Examples
    --------
    >>> from prodige.graph.container import version_for
    >>> version_for({"n_vertices": 3}), version_for({"graph": {"factors": [], "n_first": 2}})
    (3, 4)
    """
    graph = content.get("graph", content)
    if not isinstance(graph, Mapping):
        return _PLAIN
    if "n_kinds" in graph:
        return _DEFLATED
    return _SIDED if "n_first" in graph else _PLAIN


def compressed(data: memoryview) -> tuple[bytes | memoryview, str]:
    """Return bytes in the codec that takes the least room and that a reader takes."""
    packed = lzma.compress(data, lzma.FORMAT_RAW, filters=_FILTERS)
    return (packed, "lzma") if len(packed) < len(data) <= header.MAX_RATIO * len(packed) else (data, "raw")


def little_endian(array: NDArray[Any]) -> memoryview:
    r"""Return the bytes of an array as they are written, without a copy on most machines.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.graph.container import little_endian
    >>> bytes(little_endian(np.array([1, 256], dtype=np.uint16)))
    b'\x01\x00\x00\x01'
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8).data


# -- reading ---------------------------------------------------------------------------------------------------------


def read(path: StrPath) -> Contents:
    """Read a file of any kind; what its content and its arrays mean is for their owner to check.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    FileFormatError
        If the file is anything but a sound ``.prodige`` file of a version that is known here.

    Examples
    --------
    >>> import tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import container
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     Graph.from_edges([0, 1], [1, 2], [2.5, 1]).save(f"{directory}/three.prodige")
    ...     contents = container.read(f"{directory}/three.prodige")
    >>> contents.kind, contents.content["n_edges"], list(contents.arrays)
    ('graph', 2, ['degree', 'j', 'weight'])
    """
    with opened(path) as reader:
        version, found = read_header(reader)
        stored = [reader.column("uint8", entry.length) for entry in found.entries]
        reader.finish()
        try:
            arrays = {entry.name: unpack(entry, data) for entry, data in zip(found.entries, stored, strict=True)}
        except (ValueError, lzma.LZMAError) as error:
            raise reader.refusal(str(error), DAMAGED) from None
    return Contents(found.kind, version, reader.n_bytes, found.content, found.metadata, arrays)


def describe(path: StrPath) -> Description:
    """Return what a file says of itself, its metadata among it. The checksum is compared, arrays are not unpacked.

    Parameters
    ----------
    path : str or path-like

    Examples
    --------
    >>> import tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import container
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     Graph.from_edges([0], [1], [2.5]).save(f"{directory}/two.prodige", metadata={"made by": "Ada"})
    ...     description = container.describe(f"{directory}/two.prodige")
    >>> description.kind, description.content["n_edges"], description.metadata
    ('graph', 1, {'made by': 'Ada'})
    """
    with opened(path) as reader:
        version, found = read_header(reader)
        reader.skip()
        reader.finish()
    return Description(found.kind, version, reader.n_bytes, found.content, found.metadata)


def open_as(path: StrPath, kind: str, make: Callable[[Contents], Made]) -> Made:
    """Return what is made of a file of one kind; others are refused, and so is one that nothing can be made of.

    Parameters
    ----------
    path : str or path-like
    kind : str
        What the file has to hold.
    make : callable
        Makes an object of :class:`Contents`; ValueError, TypeError or LookupError where they do not fit together.
    """
    contents = read(path)
    if contents.kind != kind:
        expected, (found, opener) = KINDS[kind][0], KINDS[contents.kind]
        name = as_text(path)
        remedy = GOING_ON if opener is None else f"open it with prodige.load or {opener}.load"
        raise FileFormatError(f"{name!r}: it holds {found}, not {expected}; {remedy}")
    return make_of(path, contents, make)


def make_of(path: StrPath, contents: Contents, make: Callable[[Contents], Made]) -> Made:
    """Return what is made of the contents of a file, or say that they do not fit together."""
    try:
        return make(contents)
    except NewerError as error:
        raise refusal(as_text(path), str(error), NEWER) from error
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        problem = f"its parts do not fit together ({error or type(error).__name__})"
        raise refusal(as_text(path), problem, DAMAGED) from error


@contextmanager
def opened(path: StrPath) -> Iterator[Reader]:
    """Open a file for reading, refusing what is clearly something else."""
    name = as_text(path)
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    with open_regular(name) as file:
        beginning = file.peek(legacy.START_OF_MODEL)
        if legacy.is_text_model(beginning):
            problem = "it is a text model of an earlier format, which is no longer read"
            raise refusal(name, problem, "fit the model and save it again")
        if not beginning.startswith(MAGIC):
            raise refusal(name, "it does not start like one", "check that this is the right file")
        yield Reader(file, name, os.fstat(file.fileno()).st_size)


def read_header(reader: Reader) -> tuple[int, Header]:
    """Read everything before the arrays; what is left of the file is then known to be as long as they are."""
    _, version, length = START.unpack(reader.take(START.size))
    if version > VERSION:
        raise reader.refusal(f"it is of version {version} and the newest one known here is {VERSION}", NEWER)
    if version < 1:
        raise reader.refusal(f"there is no version {version}", DAMAGED)
    if length > header.MAX_HEADER:
        raise reader.refusal(f"its header claims {length} bytes, more than {header.MAX_HEADER}", DAMAGED)
    text = reader.take(length)
    try:
        if version >= _DEFLATED:
            text = header.inflate(text)
        found = header.decode(text) if version >= _PLAIN else legacy.decode(text, version)
        if found.kind not in KINDS:
            raise HeaderError(f"says that it holds {header.shortened(found.kind)}, which is not known")
    except HeaderError as error:
        raise reader.refusal(f"its header {error}", DAMAGED) from None
    needed = sum(entry.length for entry in found.entries)
    if reader.left != needed:
        raise reader.refusal(f"its arrays need {needed} bytes and it has room for {reader.left}", DAMAGED)
    return version, found


def unpack(entry: Entry, stored: NDArray[np.uint8]) -> NDArray[Any]:
    """Return an array of native numbers."""
    data = stored if entry.codec == "raw" else decompressed(entry, stored)
    native = np.dtype(entry.dtype)
    if native.kind == "b" and (data > 1).any():
        raise ValueError(f"array {entry.name!r} has truth values other than 0 and 1")
    return data.view(native.newbyteorder("<")).astype(native, copy=False).reshape(entry.shape)


def decompressed(entry: Entry, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bytes of a compressed array, refusing one that has more or fewer than it says."""
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    content = decompressor.decompress(stored.data, entry.n_bytes)
    if len(content) == entry.n_bytes and not decompressor.eof:  # the mark at the end gives no bytes
        content += decompressor.decompress(b"", 1)
    if len(content) != entry.n_bytes or not decompressor.eof or decompressor.unused_data:
        raise ValueError(f"array {entry.name!r} should have {entry.n_bytes} bytes, which it has not")
    return np.frombuffer(content, np.uint8).copy()  # one that may be written to, as the others


# -- texts -----------------------------------------------------------------------------------------------------------


def pack_texts(texts: Sequence[str]) -> NDArray[np.uint8]:
    """Return texts as an array: the lengths of all of them, then their bytes in UTF-8.

    Examples
    --------
    >>> from prodige.graph.container import pack_texts, unpack_texts
    >>> unpack_texts(pack_texts(["Ada", "", "größer"]), 3)
    ['Ada', '', 'größer']
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.array([len(data) for data in encoded], dtype=np.int64)
    if lengths.sum() > MAX_TEXTS:
        raise ValueError(f"texts take {lengths.sum()} bytes in a file, at most {MAX_TEXTS} are possible; shorten them")
    return np.frombuffer(lengths.astype("<u4").tobytes() + b"".join(encoded), np.uint8)


def unpack_texts(array: NDArray[Any], n: int) -> list[str]:
    """Return ``n`` texts; ValueError if there are more or fewer, or they are none."""
    if array.dtype != np.uint8 or array.ndim != 1 or array.size < 4 * n:
        raise ValueError(f"{n} texts do not fit into an array of {array.dtype} of shape {array.shape}")
    ends = np.cumsum(array[: 4 * n].view("<u4"), dtype=np.int64)
    data = array[4 * n :].tobytes()
    if (int(ends[-1]) if n else 0) != len(data):
        raise ValueError(f"{n} texts do not take {len(data)} bytes")
    return [data[begin:end].decode("utf-8", "surrogatepass") for begin, end in zip([0, *ends], ends, strict=False)]


__all__ = [
    "KINDS",
    "Contents",
    "Description",
    "FileFormatError",
    "describe",
    "make_of",
    "open_as",
    "pack_texts",
    "read",
    "size",
    "unpack_texts",
    "write",
]
