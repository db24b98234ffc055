"""MNIST10k: the test set of MNIST, 10,000 handwritten digits of 28 × 28 pixels."""

from __future__ import annotations

import gzip
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodige.datasets.download import Original, fetch
from prodige.datasets.storage import VARIABLE, write_arrays

# The page of the authors answers to browsers only at times; the mirror is the one PyTorch keeps.
_PLACES = ("http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/")

IMAGES = Original(
    "t10k-images-idx3-ubyte.gz",
    tuple(place + "t10k-images-idx3-ubyte.gz" for place in _PLACES),
    "9fb629c4189551a2d022fa330f9573f3",
)
LABELS = Original(
    "t10k-labels-idx1-ubyte.gz",
    tuple(place + "t10k-labels-idx1-ubyte.gz" for place in _PLACES),
    "ec29112dd5afa0611ce80d1b7f02629c",
)

ADVICE = (
    f"put {IMAGES.file} and {LABELS.file}, or mnist10k.npz, into a folder and name it with data_dir=... or {VARIABLE}"
)


def make(path: Path, folder: Path | None) -> None:
    """Write ``mnist10k.npz`` from the two original files."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".mnist-") as temporary:
        images = read_idx(fetch(IMAGES, Path(temporary), folder, ADVICE))
        labels = read_idx(fetch(LABELS, Path(temporary), folder, ADVICE))
    write_arrays(path, X=images.reshape(len(images), -1), y=labels)


def read_idx(path: Path) -> NDArray[Any]:
    """Read bytes in the IDX format: two zeros, type 8, the number of axes, their lengths, the data."""
    data = gzip.decompress(path.read_bytes())
    zeros, kind, n_axes = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path} is not an IDX file of bytes: it starts with {data[:4].hex()}")
    shape = struct.unpack_from(f">{n_axes}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_axes).reshape(shape)
