r"""The ``.prodige`` file: a graph on disk. Nothing in it is trusted, and a reader never sees half of one.

Reading checks every count against the size of the file before memory is set aside for it, and every edge before it
becomes part of a graph. Writing goes to a second file in the same directory that takes the place of the first in one
step, once it is complete and on the disk.

Layout of version 1, all numbers little-endian:

========  ======  ==================================================================================================
offset    bytes
========  ======  ==================================================================================================
0         8       magic, ``\x89PRODIGE``
8         4       format version, uint32
12        4       H, the length of the header, uint32; at most 2**24
16        H       header: one JSON object in ASCII, spaces at its end make H a multiple of 8
16 + H    4 E     ``i``, int32: the smaller end of each edge
...       4 E     ``j``, int32: the larger end
...       4 E     ``weight``, float32
...       32      SHA-256 of everything before it
========  ======  ==================================================================================================

Version 2 is the same with edges in fewer bits (:mod:`prodige.graph.packing`), its sections being

=========  =========================================================================================================
section    one after the other, lowest bit first, each with zeros up to the end of its last byte
=========  =========================================================================================================
degree     for every vertex as many ones as it has edges to larger ones, and a zero: E + V bits
``j``      ``bits`` for each edge: the larger end less ``least``
weight     ``bits`` for each edge: 0 is ``least``, the highest number ``greatest``, others lie evenly between them
=========  =========================================================================================================

with ``bits``, ``least`` and ``greatest`` in the table of sections, in the place of ``dtype``.

The header has exactly these keys: ``n_vertices``, ``n_items``, ``n_edges`` (E), ``sections`` and ``metadata``. The
sections are listed in the order of the file, each with ``name``, ``dtype``, ``offset`` (from the end of the header)
and ``length`` in bytes; they leave no gap, do not overlap and end at the checksum. ``metadata`` is an object of the
writer's own. There are at most 2**22 vertices more than two for each edge, as they take no room in a file but some in
memory. Edges are unique and ordered by ``i``, then ``j``, so equal graphs with equal metadata make equal files.

Every version keeps the first 12 bytes, so that a reader can say what it is looking at. The checksum finds accidents;
it is no signature, and all that is read is checked as if it came from an attacker.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige._validation import MAX_EDGES, MAX_INT32, find_isolated
from prodige.graph.packing import Packing

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

EXACT, PACKED = 1, 2  # versions: the first keeps every bit of a weight
MAGIC = b"\x89PRODIGE"  # the first byte is no text in any encoding of interest
START = struct.Struct("<8sII")  # magic, version, length of the header
COLUMNS = {"i": "int32", "j": "int32", "weight": "float32"}
MODEL_MAGIC = b"\x89PRODIGM"
START_OF_MODEL = 40  # bytes: the first models were zip archives, which begin with the head of an entry and its name
DIGEST_BYTES = hashlib.sha256().digest_size

MAX_HEADER = 2**24  # bytes, room for the labels of some 100,000 items; parsed JSON takes up to thirty times as much
MAX_NESTING = 64  # levels; far from where the JSON parser gives up, which depends on its caller's stack

DAMAGED = "the file is damaged or was not written by prodige: restore a copy, or save the graph again"

StrPath = str | os.PathLike[str]


class FileFormatError(ValueError):
    """A file is not a sound ``.prodige`` file; the message says which, what is wrong, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import fileformat
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "notes.txt")
    ...     _ = path.write_text("Not a graph.")
    ...     try:
    ...         Graph.load(path)
    ...     except fileformat.FileFormatError as error:
    ...         print(str(error).partition(": ")[2])
    it does not start like one; check that this is the right file
    """


class Description(NamedTuple):
    """What a file says of itself: all but the edges."""

    version: int
    n_bytes: int
    n_vertices: int
    n_items: int
    n_edges: int
    metadata: dict[str, Any]
    weight_bits: int = 32


class Contents(NamedTuple):
    """A whole file, checked: edges with ``i < j``, unique, ordered by ``i``, then ``j``."""

    description: Description
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    weight: NDArray[np.float32]


def write(path: StrPath, graph: Graph, metadata: Mapping[str, Any] | None = None, bits: int | None = None) -> None:
    """Write a graph to a file; a file that is there is replaced in one step, or stays as it was.

    Parameters
    ----------
    path : str or path-like
        Written to exactly here; by custom the name ends in ``.prodige``. The mode of an existing file is kept, a new
        one gets what :func:`open` would give it.
    graph : Graph
    metadata : mapping, optional
        Anything that JSON can hold, under keys that are strings.
    bits : int, optional
        Bits to round weights to, 1 to 16, in a packed file; every bit is kept when left out.

    Examples
    --------
    >>> import tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import fileformat
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     fileformat.write(f"{directory}/two.prodige", Graph.from_edges([0], [1], [2.5]))
    ...     fileformat.read(f"{directory}/two.prodige").weight
    array([2.5], dtype=float32)
    """
    name = as_text(path)
    if problem := find_isolated(graph.n_vertices, graph.n_edges):
        raise ValueError(f"graph cannot be saved: {problem}; leave out vertices without edges")
    packing = None if bits is None else Packing.of(graph.edges, graph.n_vertices, bits)
    header = encode_header(graph.n_vertices, graph.n_items, graph.n_edges, check_metadata(metadata), packing)
    start = START.pack(MAGIC, EXACT if packing is None else PACKED, len(header))
    columns = map(little_endian, graph.edges) if packing is None else packing.pack(graph.edges)
    parts: list[bytes | memoryview] = [start, header, *columns]
    digest = hashlib.sha256()
    with replacing(name) as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def size(graph: Graph, bits: int | None = None) -> int:
    """Return the bytes of the file that a graph would make, without metadata.

    Examples
    --------
    >>> from prodige import Graph
    >>> from prodige.graph import fileformat
    >>> graph = Graph.from_edges(range(1000), range(1, 1001), 1.0)
    >>> fileformat.size(graph), fileformat.size(graph, bits=8)
    (12336, 2861)
    """
    packing = None if bits is None else Packing.of(graph.edges, graph.n_vertices, bits)
    header = encode_header(graph.n_vertices, graph.n_items, graph.n_edges, {}, packing)
    edges = sum(int(section["length"]) for section in sections(graph.n_edges, packing))
    return START.size + len(header) + edges + DIGEST_BYTES


def read(path: StrPath) -> Contents:
    """Read and check a file.

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
    >>> from prodige.graph import fileformat
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     fileformat.write(f"{directory}/two.prodige", Graph.from_edges([0, 1], [1, 2], [2.5, 1]))
    ...     fileformat.read(f"{directory}/two.prodige").j
    array([1, 2], dtype=int32)
    """
    with opened(path) as reader:
        description, packing = read_description(reader)
        if packing is None:
            i, j, weight = (reader.column(dtype, description.n_edges) for dtype in COLUMNS.values())
            reader.finish()
        else:
            columns = [reader.column("uint8", section["length"]) for section in packing.sections()]
            reader.finish()
            try:
                i, j, weight = packing.unpack(columns)
            except ValueError as error:
                raise reader.refusal(str(error), DAMAGED) from None
        problem = find_bad_edge(i, j, weight, description.n_vertices)
        if problem:
            raise reader.refusal(problem, DAMAGED)
    return Contents(description, i, j, weight)


def describe(path: StrPath) -> Description:
    """Return what a file says of itself, its metadata among it. All of it is checked but the edges.

    Parameters
    ----------
    path : str or path-like

    Examples
    --------
    >>> import tempfile
    >>> from prodige import Graph
    >>> from prodige.graph import fileformat
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     Graph.from_edges([0], [1], [2.5]).save(f"{directory}/two.prodige", metadata={"made by": "Ada"})
    ...     fileformat.describe(f"{directory}/two.prodige").metadata
    {'made by': 'Ada'}
    """
    with opened(path) as reader:
        description, _ = read_description(reader)
        reader.skip()
        reader.finish()
    return description


# -- reading ---------------------------------------------------------------------------------------------------------


class Reader:
    """A file from front to back: knows how much is left before it reads, hashes what it has read."""

    def __init__(self, file: BufferedReader, name: str, n_bytes: int) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256()
        self.n_bytes = n_bytes
        self.left = n_bytes - DIGEST_BYTES

    def refusal(self, problem: str, remedy: str) -> FileFormatError:
        """Return the error that says why this file is not read."""
        return refusal(self._name, problem, remedy)

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        return self._fill(np.empty(self._claim(n_bytes), np.uint8)).tobytes()

    def column(self, dtype: str, size: int) -> NDArray[Any]:
        """Return the next bytes as an array of native numbers."""
        native = np.dtype(dtype)
        self._claim(size * native.itemsize)
        column = np.empty(size, native.newbyteorder("<"))
        self._fill(column.view(np.uint8))
        return column.astype(native, copy=False)

    def skip(self) -> None:
        """Pass over everything before the checksum, in little memory."""
        while self.left > 0:
            self.take(min(self.left, 2**20))

    def finish(self) -> None:
        """Compare the checksum."""
        if self._file.read(DIGEST_BYTES + 1) != self._digest.digest():
            raise self.refusal("its checksum does not match its contents", DAMAGED)

    def _claim(self, n_bytes: int) -> int:
        if n_bytes > self.left:
            raise self.refusal(f"it ends too early, after {self.n_bytes} bytes", DAMAGED)
        self.left -= n_bytes
        return n_bytes

    def _fill(self, target: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._file.readinto(target.data) != target.size:
            raise self.refusal("it became shorter while it was read", "try again when nobody writes to it")
        self._digest.update(target.data)
        return target


def refusal(name: str, problem: str, remedy: str) -> FileFormatError:
    """Return the error that says why a file is not read."""
    return FileFormatError(f"{name!r} cannot be read as a .prodige file: {problem}; {remedy}")


def open_regular(path: StrPath) -> BufferedReader:
    """Open a file for reading; what is no file is refused at once, also a pipe that nobody writes to.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    FileFormatError
        If it is a directory, a pipe or a device.

    Examples
    --------
    >>> import os
    >>> from prodige.graph import fileformat
    >>> try:
    ...     fileformat.open_regular(os.devnull)
    ... except fileformat.FileFormatError as error:
    ...     print(str(error).partition(": ")[2])
    it is a pipe or a device; give the name of a file
    """
    name = as_text(path)
    at_once = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer, opened in the usual way, would wait for one
    kind = "a pipe or a device"
    try:
        file = open(name, "rb", opener=lambda name, flags: os.open(name, flags | at_once))  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    except IsADirectoryError:
        kind = "a directory"
    except OSError as error:
        if error.errno != errno.ENXIO:  # that of a socket, or of a device that is not there
            raise
    raise FileFormatError(f"{name!r} cannot be read as a file: it is {kind}; give the name of a file")


def is_text_model(beginning: bytes) -> bool:
    """Whether a file that begins so is one of :mod:`prodige.text.modelfile`, of its first version or a later one."""
    is_archive = beginning.startswith(b"PK\x03\x04") and beginning[30:START_OF_MODEL] == b"model.json"
    return is_archive or beginning.startswith(MODEL_MAGIC)


@contextmanager
def opened(path: StrPath) -> Iterator[Reader]:
    """Open a file for reading, refusing what is clearly something else."""
    name = as_text(path)
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    with open_regular(name) as file:
        beginning = file.peek(START_OF_MODEL)
        if is_text_model(beginning):
            remedy = "open it with 'prodige classify' or GraphTextClassifier.load"
            raise refusal(name, "it is a model of texts, not a graph", remedy)
        if not beginning.startswith(MAGIC):
            raise refusal(name, "it does not start like one", "check that this is the right file")
        yield Reader(file, name, os.fstat(file.fileno()).st_size)


def read_description(reader: Reader) -> tuple[Description, Packing | None]:
    """Read everything before the edges; what is left of the file is then known to be as long as the edges are."""
    _, version, header_length = START.unpack(reader.take(START.size))
    if version > PACKED:
        raise reader.refusal(
            f"it is of version {version} and the newest one known here is {PACKED}", "upgrade prodige to read it"
        )
    if version < EXACT:
        raise reader.refusal(f"there is no version {version}", DAMAGED)
    if header_length > MAX_HEADER:
        raise reader.refusal(f"its header claims {header_length} bytes, more than {MAX_HEADER}", DAMAGED)
    try:
        counts, metadata, packing = decode_header(reader.take(header_length), version)
    except HeaderError as error:
        raise reader.refusal(f"its header {error}", DAMAGED) from None
    n_vertices, n_items, n_edges = counts
    needed = sum(section["length"] for section in sections(n_edges, packing))
    if reader.left != needed:
        raise reader.refusal(f"its edges need {needed} bytes and it has room for {reader.left}", DAMAGED)
    weight_bits = 32 if packing is None else packing.weight_bits
    return Description(version, reader.n_bytes, n_vertices, n_items, n_edges, metadata, weight_bits), packing


def find_bad_edge(
    i: NDArray[np.int32], j: NDArray[np.int32], weight: NDArray[np.float32], n_vertices: int
) -> str | None:
    """Say what is wrong with the first bad edge, if there is one."""
    later = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))
    in_order = np.concatenate([[True], later])[: i.size]
    checks = {
        f"does not join two vertices i < j of 0 to {n_vertices - 1}": (i >= 0) & (i < j) & (j < n_vertices),
        "is repeated or out of order": in_order,
        # -0 counts as negative: graphs that are equal would have hashes that are not.
        "has a weight that is negative or not finite": np.isfinite(weight) & ~np.signbit(weight),
    }
    for problem, good in checks.items():
        if not good.all():
            e = int(np.argmin(good))
            return f"edge {e}, i = {i[e]}, j = {j[e]}, weight = {weight[e]}, {problem}"
    return None


# -- the header ------------------------------------------------------------------------------------------------------


class HeaderError(ValueError):
    """What is wrong with a header, as the end of a sentence about it."""


def encode_header(
    n_vertices: int, n_items: int, n_edges: int, metadata: dict[str, Any], packing: Packing | None
) -> bytes:
    """Return the header as it is written."""
    counts = {"n_vertices": n_vertices, "n_items": n_items, "n_edges": n_edges}
    table = sections(n_edges, packing)
    header = json.dumps({**counts, "sections": table, "metadata": metadata}, allow_nan=False).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"metadata makes a header of {len(header)} bytes, at most {MAX_HEADER} are possible; "
            "keep what is large in a file of its own"
        )
    return header


def decode_header(text: bytes, version: int) -> tuple[tuple[int, int, int], dict[str, Any], Packing | None]:
    """Return the numbers of vertices, items and edges, the metadata, and how edges are packed if they are."""
    try:
        header = json.loads(text.decode("ascii"), object_pairs_hook=unique_keys, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HeaderError(f"is not JSON as it should be ({reason})") from None
    if nesting(header) > MAX_NESTING:
        raise HeaderError(f"is nested more than {MAX_NESTING} levels deep")
    keys = ["metadata", "n_edges", "n_items", "n_vertices", "sections"]
    if not isinstance(header, dict) or sorted(header) != keys:
        raise HeaderError(f"is not a JSON object with the keys {', '.join(keys)}")
    n_vertices = count(header, "n_vertices", 1, MAX_INT32 - 1)
    n_items = count(header, "n_items", 1, n_vertices)
    n_edges = count(header, "n_edges", 0, MAX_EDGES)
    if problem := find_isolated(n_vertices, n_edges):
        raise HeaderError(f"claims what no graph has: {problem}")
    packing, names = None, "i, j and weight"
    if version == PACKED:
        names = "degree, j and weight"
        try:
            packing = Packing.from_sections(header["sections"], n_vertices, n_edges)
        except ValueError as error:
            raise HeaderError(f"has sections that make no sense: {error}") from None
    # Compared as text: in Python, 0 == False == 0.0.
    if json.dumps(header["sections"], sort_keys=True) != json.dumps(sections(n_edges, packing), sort_keys=True):
        raise HeaderError(f"has sections other than {names} of {n_edges} edges, one after the other")
    if not isinstance(header["metadata"], dict):
        raise HeaderError("has metadata that is not a JSON object")
    return (n_vertices, n_items, n_edges), header["metadata"], packing


def sections(n_edges: int, packing: Packing | None = None) -> list[dict[str, Any]]:
    """Return the table of sections of a file with this many edges."""
    if packing is not None:
        return packing.sections()
    table: list[dict[str, Any]] = []
    offset = 0
    for name, dtype in COLUMNS.items():
        length = n_edges * np.dtype(dtype).itemsize
        table.append({"name": name, "dtype": dtype, "offset": offset, "length": length})
        offset += length
    return table


def check_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata as a file gives it back, which is as it was: what JSON would change is refused."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict, got {metadata!r} of type {type(metadata).__name__}")
    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"metadata cannot be written as JSON: {error}; use str, int, finite float, bool, None, list and dict"
        ) from None
    if nesting(kept) >= MAX_NESTING:  # the header around it is a level of its own
        raise ValueError(f"metadata is nested {nesting(kept)} levels deep; at most {MAX_NESTING - 1} are possible")
    if kept != dict(metadata):
        raise ValueError(
            f"metadata would be read back as {shortened(kept)}, not as the {shortened(metadata)} it is; "
            "use strings for keys and lists for tuples"
        )
    return kept


def count(header: dict[str, Any], key: str, least: int, most: int) -> int:
    """Return one of the header's numbers."""
    value = header[key]
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise HeaderError(f"has {key} = {shortened(value)}, which is not a whole number from {least} to {most}")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object whose keys differ: readers that keep the first and the last of two would disagree."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has the same key twice")
    return result


def no_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


def nesting(value: Any) -> int:
    """Return how deep lists and dicts lie inside each other. Not recursive: the value may come from an attacker."""
    depth, level = 0, [value]
    while containers := [entry for entry in level if isinstance(entry, (dict, list))]:
        depth += 1
        level = [child for entry in containers for child in (entry.values() if isinstance(entry, dict) else entry)]
    return depth


def shortened(value: Any) -> str:
    """Return a value for a message of one line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- writing ---------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(name: str) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``name`` when the block ends well, and leaves no trace when it does not.

    A process that is killed leaves a trace; the next one that writes to the same place removes it.
    """
    target = os.path.realpath(name)  # a link stays a link, as with open()
    mode = mode_of_existing(name, target)
    try:
        with draft(target) as temporary:
            with open(temporary, "wb") as file:
                if mode is not None:
                    os.chmod(temporary, mode)  # while it is empty: what is private stays so
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from None  # the name the caller knows
    flush_directory(os.path.dirname(target))


@contextmanager
def draft(target: str) -> Iterator[str]:
    """Make an empty file beside another for as long as the block lasts, and remove what others have left behind.

    It is locked meanwhile. A lock ends with its process, however that ends: a draft without one belongs to nobody.
    """
    directory, base = os.path.split(target)
    prefix = (
        f".prodige-{hashlib.sha256(os.fsencode(base)).hexdigest()[:16]}-"  # the name itself may be as long as can be
    )
    path, descriptor = new_draft(directory, prefix)
    try:
        sweep(directory, prefix)
        yield path
    finally:  # an interrupt leaves nothing behind either
        with suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def new_draft(directory: str, prefix: str) -> tuple[str, int]:
    """Make and lock an empty file; return its path and the descriptor that holds the lock."""
    while True:
        path = os.path.join(directory, f"{prefix}{secrets.token_hex(8)}.tmp")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        with suppress(OSError):  # where files cannot be locked nothing is swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)  # another process swept it before it was locked


def sweep(directory: str, prefix: str) -> None:
    """Remove drafts that nobody holds a lock on."""
    with suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith(prefix) and name.endswith(".tmp"):
                remove_unlocked(os.path.join(directory, name))


def remove_unlocked(path: str) -> None:
    """Remove a file unless somebody holds a lock on it, or it may not be."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)


def mode_of_existing(name: str, target: str) -> int | None:
    """Return the permissions of the file to be replaced, None if there is none; refuse what must not be replaced."""
    if not os.path.basename(name) or os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ValueError(f"path {name!r} is a pipe or a device; save to a file instead")
    if not os.access(target, os.W_OK):  # a rename would not mind, the owner would
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return stat.S_IMODE(mode)


def flush_directory(directory: str) -> None:
    """Put the new name on the disk, where the system can; the file is in place, so that failing is no error."""
    if os.name != "posix":
        return
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def little_endian(column: NDArray[Any]) -> memoryview:
    """Return the bytes of a column as they are written, without a copy on most machines."""
    return column.astype(column.dtype.newbyteorder("<"), copy=False).view(np.uint8).data


def as_text(path: StrPath) -> str:
    """Return a path as a string."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be a str or path-like, got {path!r} of type {type(path).__name__}") from None
