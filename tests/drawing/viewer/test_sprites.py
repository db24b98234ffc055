"""Thumbnails: every image is where the page looks for it, in files that others can read."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from browser import decode_png
from prodige import Graph
from prodige.drawing.viewer import sprites
from prodige.drawing.viewer.sprites import encode_png, pack


def items(n: int) -> Graph:
    return Graph.from_edges([], [], [], n_vertices=n)


@given(
    pixels=st.tuples(st.integers(1, 7), st.integers(1, 7), st.sampled_from([1, 3, 4])).flatmap(
        lambda shape: arrays.arrays(np.uint8, shape)
    )
)
@settings(max_examples=50, deadline=None)
def test_png_comes_back(pixels: NDArray[np.uint8]) -> None:
    np.testing.assert_array_equal(decode_png(encode_png(pixels)), pixels)


@pytest.mark.parametrize("shape", [(7, 4, 6), (7, 6, 4, 3), (1, 3, 3, 4), (5, 1, 9)])
@pytest.mark.parametrize("most", [4096, 12])
def test_images_are_where_they_belong(shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sprites, "MOST_SHEET", most)  # 12 pixels: several sheets
    images = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    packed = pack(images, items(len(images)))
    sheets = [decode_png(base64.b64decode(uri.removeprefix("data:image/png;base64,"))) for uri in packed.sheets]
    assert packed.n_images == len(images)
    assert all(max(sheet.shape[:2]) <= most for sheet in sheets)
    for number, image in enumerate(images):  # as GraphData.image in data.js does it
        sheet, within = divmod(number, packed.columns * packed.rows)
        row, column = divmod(within, packed.columns)
        y, x = row * packed.height, column * packed.width
        found = sheets[sheet][y : y + packed.height, x : x + packed.width]
        np.testing.assert_array_equal(found.reshape(image.shape), image)


def test_hubs_may_have_images() -> None:
    graph = Graph.from_edges([0, 1], [2, 2], [1, 1], n_items=2)
    assert pack(np.zeros((2, 4, 4), np.uint8), graph).n_images == 2
    assert pack(np.zeros((3, 4, 4), np.uint8), graph).n_images == 3


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (np.zeros((3, 4, 4)), TypeError, r"images must be uint8, got float64; .*255 \* images"),
        ([[[0, 1]]] * 3, TypeError, "images must be uint8, got int64"),
        (np.zeros((3, 16), np.uint8), ValueError, r"got \(3, 16\); .*reshape"),
        (np.zeros((3, 4, 4, 2), np.uint8), ValueError, r"got \(3, 4, 4, 2\)"),
        (np.zeros((4, 4, 4), np.uint8), ValueError, "images must hold 3 images, got 4"),
        (np.zeros((3, 257, 4), np.uint8), ValueError, "images are 257 by 4 pixels, thumbnails have 1 to 256"),
        (np.zeros((3, 0, 4), np.uint8), ValueError, "images are 0 by 4 pixels"),
    ],
)
def test_images_are_checked(images: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pack(images, items(3))


def test_number_of_sheets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sprites, "MOST_SHEET", 16)
    with pytest.raises(
        ValueError, match="40 images of 8 by 8 pixels, which fill 10 sheets of 16 by 16; 8 are possible"
    ):
        pack(np.zeros((40, 8, 8), np.uint8), items(40))
