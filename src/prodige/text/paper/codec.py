"""A text network over a graph as a description and arrays of few bits, and back.

Tokens are stored in alphabetical order, which compresses best, and their edges in the same order. Lengths of edges are
rounded to 6 bits and filters to 8; hub numbers are split into their two bytes, the upper of which is nearly always the
same. What is decoded is what is in use after a fit as well, so nothing changes when a model is saved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prodige.graph.graph import Graph
from prodige.graph.header import shortened
from prodige.learning.anchor_layout import AnchorLayout
from prodige.learning.anchors import AnchorEmbedding, FrozenAnchorEmbedding
from prodige.text.paper.network import TextNetwork
from prodige.text.vocabulary import PADDING, PATTERN, SPECIAL, Vocabulary

Arrays = dict[str, NDArray[Any]]

# Steps that the length of an edge is rounded to: edges of tokens, and those between hubs and anchors. Twice as many do
# not lower the loss on texts held out of IMDB, half as many raise it.
_TOKEN_STEPS = 63
_HUB_STEPS = 63
_FILTER_STEPS = 127
_MOST_HUBS = 2**16
_MOST_EDGES = 255

# The most bytes of words in a vocabulary, and of a table that predicting takes. Small files have less room:
# a word has one or two edges and takes about three bytes of a file, and a usual table thirty times as many as the file.
MAX_WORDS = 2**25
MAX_TABLE = 2**32
_MOST_EDGES_PER_BYTE = 16
_MOST_TABLE_PER_BYTE = 2**13

# Type and number of dimensions of every array of a network.
KINDS = {
    "tokens": ("u1", 1),
    "n_edges": ("u1", 1),
    "hub_low": ("u1", 1),
    "hub_high": ("u1", 1),
    "length": ("u1", 1),
    "between": ("u1", 2),
    "center": ("f4", 1),
    "filters": ("i1", 3),
    "filter_step": ("f4", 1),
    "filter_bias": ("f4", 1),
    "dense": ("f4", 2),
    "dense_bias": ("f4", 1),
}

# What a file stores in one array, one after the other: some have so few different bytes that no reader would unpack
# them by themselves, and every array has a name in the header.
_EDGES = ("n_edges", "hub_low", "hub_high", "length", "between")
_NUMBERS = ("center", "filter_step", "filter_bias", "dense", "dense_bias")
_ALONE = ("tokens", "filters")


def encode(network: TextNetwork, vocabulary: Vocabulary) -> tuple[dict[str, Any], Arrays]:
    """Return a network whose embedding is an :class:`AnchorEmbedding`, as JSON data and arrays.

    Its graph must be as :func:`prodige.learning.anchors_from_vectors.attach_to_hubs` makes it: tokens on hubs, every
    hub on every anchor.
    """
    embedding = network.embedding
    if not isinstance(embedding, (AnchorEmbedding, FrozenAnchorEmbedding)):
        raise TypeError(f"embedding must be over a graph, got {type(embedding).__name__}")
    if vocabulary.pattern != PATTERN:
        raise ValueError(
            f"vocabulary must have the usual pattern to be saved with a network, got {vocabulary.pattern!r}: a pattern "
            "from a file could keep whoever opens it busy for ever"
        )
    frozen = embedding.freeze() if isinstance(embedding, AnchorEmbedding) else embedding
    graph, n_items = frozen.graph, len(vocabulary)
    layout = AnchorLayout.of(graph, frozen.embedding_dim)
    order = alphabetical(vocabulary)
    place = np.empty(n_items, dtype=np.int64)
    place[order] = np.arange(n_items)
    edges = graph.edges
    check_layout(graph, layout, n_items)
    of_tokens, of_hubs = layout.kinds(edges.i, edges.j)
    token, hub = place[edges.i[of_tokens]], edges.j[of_tokens] - layout.first_hub
    weight = edges.weight[of_tokens]
    by_token = np.lexsort((weight, token))
    token, hub, weight = token[by_token], hub[by_token], weight[by_token]
    between = np.zeros((layout.n_hubs, layout.n_anchors), dtype=np.float32)
    between[edges.i[of_hubs] - layout.first_hub, edges.j[of_hubs] - layout.first_anchor] = edges.weight[of_hubs]
    lengths, length_least, length_step = quantize(weight, _TOKEN_STEPS)
    between_codes, between_least, between_step = quantize(between, _HUB_STEPS)
    filters = network.convolution.weight.detach().numpy()
    step = np.maximum(np.abs(filters).max(axis=(1, 2)), 1e-30) / _FILTER_STEPS
    description = {
        "length_least": length_least,
        "length_step": length_step,
        "between_least": between_least,
        "between_step": between_step,
        "scale": float(frozen.scale),
        "unreachable": float(frozen.unreachable),
    }
    arrays = {
        "tokens": np.frombuffer("\n".join(vocabulary.tokens[t] for t in order[len(SPECIAL) :]).encode(), np.uint8),
        "n_edges": np.bincount(token, minlength=n_items).astype(np.uint8),
        "hub_low": (hub & 255).astype(np.uint8),
        "hub_high": (hub >> 8).astype(np.uint8),
        "length": lengths,
        "between": between_codes,
        "center": frozen.center.numpy().astype(np.float32),
        "filters": np.rint(filters / step[:, None, None]).astype(np.int8),
        "filter_step": step.astype(np.float32),
        "filter_bias": network.convolution.bias.detach().numpy(),
        "dense": network.dense.weight.detach().numpy(),
        "dense_bias": network.dense.bias.detach().numpy(),
    }
    return description, arrays


def decode(description: dict[str, Any], arrays: Arrays, n_jobs: int | None) -> tuple[TextNetwork, Vocabulary]:
    """Return the network, ready to predict, and its vocabulary.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the arrays do not fit together; what is wrong with a file is the caller's to say.
    """
    check_arrays(arrays)
    vocabulary = Vocabulary(arrays["tokens"].tobytes().decode().split("\n"))
    n_items = len(vocabulary)
    n_edges = arrays["n_edges"].astype(np.int64)
    n_hubs, n_anchors = arrays["between"].shape
    token = np.repeat(np.arange(n_items), n_edges)
    hub = arrays["hub_low"].astype(np.int64) + 256 * arrays["hub_high"].astype(np.int64)
    if hub.max(initial=0) >= n_hubs:
        raise ValueError(f"there is no hub {hub.max()} among {n_hubs}")
    for name in ("length_least", "length_step", "between_least", "between_step", "scale", "unreachable"):
        if not 0 <= float(description[name]) < np.inf or (name == "scale" and not description[name]):
            raise ValueError(f"{name} = {description[name]} is no length")
    layout = AnchorLayout(n_items, n_hubs, n_anchors)
    graph = Graph.from_edges(
        *layout.join(token, hub),
        np.concatenate(
            [
                description["length_least"] + arrays["length"] * np.float32(description["length_step"]),
                description["between_least"] + arrays["between"].ravel() * np.float32(description["between_step"]),
            ]
        ),
        n_vertices=layout.n_vertices,
        n_items=n_items,
    )
    embedding = FrozenAnchorEmbedding(
        graph, n_anchors, arrays["center"], description["scale"], description["unreachable"], padding_idx=PADDING
    )
    n_filters, _, kernel_size = arrays["filters"].shape
    # The weights it starts with are not those it gets.
    network = TextNetwork(embedding, arrays["dense_bias"].size, n_filters, kernel_size, n_jobs, torch.Generator())
    with torch.no_grad():
        filters = arrays["filters"] * arrays["filter_step"][:, None, None]
        for parameter, values in (
            (network.convolution.weight, filters),
            (network.convolution.bias, arrays["filter_bias"]),
            (network.dense.weight, arrays["dense"]),
            (network.dense.bias, arrays["dense_bias"]),
        ):
            parameter.copy_(torch.tensor(values))
    return network.eval().requires_grad_(False), vocabulary


def joined(arrays: Arrays) -> Arrays:
    """Return the arrays of a network as a file has them: few, so that little of it is their names.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.paper.codec import KINDS, joined
    >>> list(joined({name: np.zeros((1,) * n_dimensions, kind) for name, (kind, n_dimensions) in KINDS.items()}))
    ['tokens', 'filters', 'edges', 'numbers']
    """
    parts = {"edges": _EDGES, "numbers": _NUMBERS}
    together = {key: np.concatenate([arrays[name].ravel() for name in names]) for key, names in parts.items()}
    return {name: arrays[name] for name in _ALONE} | together


def split(arrays: Arrays) -> Arrays:
    """Return what :func:`joined` joined; ValueError or KeyError if the sizes cannot be right."""
    for name, kind in (("edges", "u1"), ("numbers", "f4")):
        if arrays[name].dtype != np.dtype(kind) or arrays[name].ndim != 1:
            raise ValueError(f"{name} should be one row of {kind}")
    if arrays["filters"].ndim != 3:
        raise ValueError(f"filters should have 3 dimensions, not {arrays['filters'].ndim}")
    n_items = len(SPECIAL) + 1 + np.count_nonzero(arrays["tokens"] == ord("\n"))
    n_filters, n_anchors, _ = arrays["filters"].shape
    n_edges = int(arrays["edges"][:n_items].sum(dtype=np.int64))
    n_between = arrays["edges"].size - n_items - 3 * n_edges
    n_classes, left = divmod(arrays["numbers"].size - n_anchors - 2 * n_filters, n_filters + 1)
    if n_between < 0 or not n_anchors or n_between % n_anchors or n_classes < 0 or left:
        raise ValueError(f"{arrays['edges'].size} bytes of edges or {arrays['numbers'].size} numbers cannot be right")
    edges = dict(zip(_EDGES, np.split(arrays["edges"], np.cumsum([n_items, n_edges, n_edges, n_edges])), strict=True))
    edges["between"] = edges["between"].reshape(-1, n_anchors)
    sizes = [n_anchors, n_filters, n_filters, n_classes * n_filters]
    numbers = dict(zip(_NUMBERS, np.split(arrays["numbers"], np.cumsum(sizes)), strict=True))
    numbers["dense"] = numbers["dense"].reshape(n_classes, n_filters)
    return {name: arrays[name] for name in _ALONE} | edges | numbers


def check_layout(graph: Graph, layout: AnchorLayout, n_tokens: int) -> None:
    """Refuse a graph that the arrays of a file cannot hold."""
    i, j, _ = graph.edges
    of_token, between = layout.kinds(i, j)
    is_complete = between.sum() == layout.n_hubs * layout.n_anchors
    if layout.n_items != n_tokens or not (of_token | between).all() or not is_complete:
        raise ValueError(
            f"the graph must have {n_tokens} tokens on hubs, and every hub on every anchor, to be saved with a "
            "network; make it with AnchorEmbedding.from_vectors"
        )
    if layout.n_hubs > _MOST_HUBS or np.bincount(i[of_token], minlength=1).max() > _MOST_EDGES:
        raise ValueError(f"the graph has more than {_MOST_HUBS} hubs, or a token with more than {_MOST_EDGES} edges")


def check_arrays(arrays: Arrays) -> None:
    """Refuse arrays that do not fit together, before anything is made of them."""
    for name, (kind, n_dimensions) in KINDS.items():
        array = arrays[name]
        if array.dtype != np.dtype(kind) or array.ndim != n_dimensions:
            raise ValueError(
                f"{name} should have {n_dimensions} dimensions of {kind}, not {array.ndim} of {array.dtype}"
            )
        if kind == "f4" and not np.isfinite(array).all():
            raise ValueError(f"{name} should have finite numbers only")
    n_items = len(SPECIAL) + 1 + np.count_nonzero(arrays["tokens"] == ord("\n"))
    n_edges = int(arrays["n_edges"].sum(dtype=np.int64))
    n_filters, n_anchors, _ = arrays["filters"].shape
    shapes = {
        "n_edges": (n_items,),
        "hub_low": (n_edges,),
        "hub_high": (n_edges,),
        "length": (n_edges,),
        "between": (arrays["between"].shape[0], n_anchors),
        "center": (n_anchors,),
        "filter_step": (n_filters,),
        "filter_bias": (n_filters,),
        "dense": (arrays["dense"].shape[0], n_filters),
        "dense_bias": (arrays["dense"].shape[0],),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape or 0 in shape:
            raise ValueError(f"{name} should have shape {shape} and not be empty, it has {arrays[name].shape}")
    if not arrays["filters"].size:
        raise ValueError(f"there are no filters in an array of shape {arrays['filters'].shape}")


def check_size(n_bytes: int, arrays: Arrays) -> None:
    """Refuse a file that would take out of proportion more memory than it has bytes.

    The largest that are made of one are a graph, and tables of what anchors and filters see of each token.
    """
    n_items = arrays["n_edges"].size
    n_edges = arrays["length"].size + arrays["between"].size
    if max(n_items, n_edges) > _MOST_EDGES_PER_BYTE * n_bytes + 2**18:
        raise ValueError(f"a file of {n_bytes} bytes with {n_items} tokens and {n_edges} edges is none of prodige")
    n_filters, n_anchors, kernel_size = arrays["filters"].shape
    most = min(MAX_TABLE, max(2**26, _MOST_TABLE_PER_BYTE * n_bytes))
    check_tables(n_items, n_anchors, n_filters, kernel_size, most)


def check_tables(n_items: int, n_anchors: int, n_filters: int, kernel_size: int, most: int) -> None:
    """Refuse a network that has to set aside too much memory to predict.

    Examples
    --------
    >>> from prodige.text.paper.codec import MAX_TABLE, check_tables
    >>> check_tables(32_000, 32, 32, 5, MAX_TABLE)
    """
    needed = 4 * n_items * max(n_anchors, n_filters * kernel_size)
    if needed > most:
        raise ValueError(
            f"{n_items} tokens with {n_anchors} anchors and {n_filters} filters of {kernel_size} take tables of "
            f"{needed / 2**30:.3g} GiB, more than {most / 2**30:.3g}; lower max_vocabulary, n_anchors or n_filters"
        )


def check_words(vocabulary: Vocabulary) -> None:
    """Refuse a vocabulary that a file has no room for."""
    n_bytes = sum(len(token.encode()) + 1 for token in vocabulary.tokens)
    if n_bytes > MAX_WORDS:
        longest = max(vocabulary.tokens, key=len)
        raise ValueError(
            f"the {len(vocabulary)} words take {n_bytes} bytes, a file has room for {MAX_WORDS}: lower max_vocabulary, "
            f"or take out of the texts what is no word; the longest has {len(longest)} letters, {shortened(longest)}"
        )


def alphabetical(vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Return token ids in alphabetical order, after padding and unknown."""
    words = range(len(SPECIAL), len(vocabulary))
    return np.array([*range(len(SPECIAL)), *sorted(words, key=vocabulary.tokens.__getitem__)], dtype=np.int64)


def quantize(values: NDArray[np.float32], n_steps: int) -> tuple[NDArray[np.uint8], float, float]:
    """Return values as whole numbers up to ``n_steps``, the least value and the step.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.paper.codec import quantize
    >>> quantize(np.array([1.0, 2.0, 3.0], np.float32), 4)
    (array([0, 2, 4], dtype=uint8), 1.0, 0.5)
    """
    if not values.size:
        return np.zeros(values.shape, np.uint8), 0.0, 0.0
    least = float(values.min())
    step = (float(values.max()) - least) / n_steps
    if step == 0:
        return np.zeros(values.shape, np.uint8), least, 0.0
    return np.rint((values - least) / step).astype(np.uint8), least, step
