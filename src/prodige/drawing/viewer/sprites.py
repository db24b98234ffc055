"""Thumbnails as sprite sheets: many small images in a few large ones, which a browser unpacks at once.

The sheets are PNG files, written here with zlib alone: a dependency on an imaging library would be a lot for the
simplest form of one format.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prodige.drawing.viewer.inputs import sizes

if TYPE_CHECKING:
    from prodige.graph.graph import Graph

MOST_PIXELS = 256  # along a side of an image
MOST_SHEET = 4096  # along a side of a sheet: what browsers on phones can hold
MOST_SHEETS = 8  # unpacked, a full one takes 64 MB

COLOR_TYPES = {1: 0, 3: 2, 4: 6}  # of PNG, by the number of channels: grey, RGB, RGBA


class Sheets(NamedTuple):
    """Images ``width`` by ``height`` pixels, in rows of ``columns``, ``rows`` of them on a sheet."""

    width: int
    height: int
    columns: int
    rows: int
    n_images: int
    sheets: list[str]


def pack(images: NDArray[np.uint8], graph: Graph) -> Sheets:
    """Return the images of items or vertices as data URIs of a few sheets.

    Parameters
    ----------
    images : ndarray of uint8, shape [N, h, w], [N, h, w, 3] or [N, h, w, 4]
    graph : Graph

    Examples
    --------
    >>> import numpy as np
    >>> from prodige import Graph
    >>> from prodige.drawing.viewer.sprites import pack
    >>> sheets = pack(np.zeros((3, 8, 8), np.uint8), Graph.from_edges([0, 1], [1, 2], [1, 1]))
    >>> sheets.columns, sheets.rows, sheets.sheets[0][:22]
    (2, 2, 'data:image/png;base64,')
    """
    images = check_images(images, graph)
    n, height, width, channels = images.shape
    columns = min(MOST_SHEET // width, max(1, math.ceil(math.sqrt(n * height / width))))
    rows = min(MOST_SHEET // height, math.ceil(n / columns))
    n_sheets = math.ceil(n / (columns * rows))
    if n_sheets > MOST_SHEETS:
        raise ValueError(
            f"images has {n} images of {height} by {width} pixels, which fill {n_sheets} sheets of {MOST_SHEET} by "
            f"{MOST_SHEET}; {MOST_SHEETS} are possible, so shrink the images, as by images[:, ::2, ::2]"
        )
    uris = []
    for first in range(0, n, columns * rows):
        some = images[first : first + columns * rows]
        sheet = np.zeros((rows * columns, height, width, channels), np.uint8)
        sheet[: len(some)] = some
        grid = sheet.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
        png = encode_png(grid.reshape(rows * height, columns * width, channels))
        uris.append("data:image/png;base64," + base64.b64encode(png).decode())
    return Sheets(width, height, columns, rows, n, uris)


def check_images(images: Any, graph: Graph) -> NDArray[np.uint8]:
    """Return images with an axis for channels, shape [N, h, w, 1, 3 or 4]."""
    images = np.asarray(images)
    if images.dtype != np.uint8:
        raise TypeError(
            f"images must be uint8, got {images.dtype}; numbers between 0 and 1 become so by "
            "(255 * images).astype(np.uint8)"
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in COLOR_TYPES:
        raise ValueError(
            f"images must have shape [N, h, w], [N, h, w, 3] or [N, h, w, 4], got {images.shape}; "
            "rows of pixels become images by images.reshape(-1, h, w)"
        )
    n, height, width, _ = images.shape
    if n not in (graph.n_items, graph.n_vertices):
        raise ValueError(f"images must hold {sizes(graph)} images, got {n}")
    if not (1 <= height <= MOST_PIXELS and 1 <= width <= MOST_PIXELS):
        raise ValueError(
            f"images are {height} by {width} pixels, thumbnails have 1 to {MOST_PIXELS} a side; "
            "shrink them first, as by images[:, ::2, ::2]"
        )
    checked: NDArray[np.uint8] = images
    return checked


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    r"""Return a PNG file.

    Parameters
    ----------
    pixels : ndarray of uint8, shape [h, w, 1, 3 or 4]

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.drawing.viewer.sprites import encode_png
    >>> encode_png(np.zeros((2, 2, 3), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    # Drawings in grey pack best as they are, photographs as differences from the row above.
    above = channels > 1
    lines = np.empty((height, 1 + width * channels), np.uint8)
    lines[:, 0] = 2 if above else 0
    lines[:, 1:] = rows
    if above:
        lines[1:, 1:] -= rows[:-1]
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    body = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in body)


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a part of a PNG file: its length, kind, data and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
