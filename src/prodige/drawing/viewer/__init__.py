"""The viewer: a page that shows a graph, in one file that needs no network.

``assets/`` holds the page itself, in plain HTML, CSS and JavaScript. Python checks what it is to show (``inputs``),
packs images into sheets (``sprites``), and puts all of it into one file (``page``). Of a product of graphs the page
shows items and their neighbours (``neighbors``).
"""

from prodige.drawing.viewer.neighbors import write_neighbors
from prodige.drawing.viewer.page import render, write

__all__ = ["render", "write", "write_neighbors"]
