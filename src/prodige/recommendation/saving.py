"""Files of recommenders: the graph, the settings, names, and by choice what users interacted with.

Interactions are kept as sorted numbers, user · items + item, whose differences take few bits: the high bits of all of
them as ones between zeros, then their low bits (Elias 1974, Fano 1971). That is about 2 + log₂(users · items / n) bits
each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from prodige._validation import MAX_INT32, check_number
from prodige.graph import container, encoding, file
from prodige.graph.atomic import StrPath
from prodige.graph.factors import GeometricFactor
from prodige.graph.header import count, shortened
from prodige.graph.packing import from_unary, pack_bits, packed_length, unary, unpack_bits
from prodige.graph.product import ProductGraph
from prodige.recommendation.labels import read_labels
from prodige.recommendation.parameters import EDGES, OLD_EDGES
from prodige.recommendation.paths import Paths
from prodige.recommendation.placing import Constants
from prodige.recommendation.vectors import Vectors

_BUDGETS = ("bits_per_item", "numbers_per_item")
_CONSTANTS = ("alpha", "ridge", "level", "scale")


class Read(NamedTuple):
    """What a file holds."""

    parameters: dict[str, Any]
    answers: Paths | Vectors
    n_users: int
    user_labels: list[str] | None
    item_labels: list[str] | None
    interactions: csr_array | None


def write(path: StrPath, model: Any) -> None:
    """Write a fitted recommender to a file."""
    graph, arrays = file.encode(model.graph_)
    content: dict[str, Any] = {"graph": graph, "n_users": model.n_users_, "edges": model.edges}
    for name in _BUDGETS:
        if getattr(model, name) is not None:
            content[name] = float(getattr(model, name))
    if isinstance(model._answers, Vectors):
        content |= {"store_users": bool(model.store_users), "constants": asdict(model._answers.constants)}
    if model.interactions_ is not None:
        content["n_interactions"] = int(model.interactions_.nnz)
        arrays |= pack_interactions(model.interactions_)
    for name, labels in (("user_labels", model.user_labels_), ("item_labels", model.item_labels_)):
        if labels is not None:
            arrays[name] = container.pack_texts(labels)
    container.write(path, "recommender", content, arrays)


def decode(contents: container.Contents) -> Read:
    """Return what a file of a recommender holds; ValueError, TypeError or KeyError if its parts do not fit together."""
    content = contents.content
    n_users, edges = content["n_users"], content["edges"]
    graph = file.decode(content["graph"], contents.arrays)
    is_product = isinstance(graph, ProductGraph)
    if edges not in EDGES + OLD_EDGES or (edges == "product") != is_product:
        raise ValueError(f"edges = {shortened(edges)} cannot be right")
    store_users = content.get("store_users", True)
    if type(store_users) is not bool or (not store_users and not is_product):
        raise ValueError(f"store_users = {shortened(store_users)} cannot be right")
    most = graph.n_items - 1 if store_users else MAX_INT32 // 2
    if type(n_users) is not int or not 0 < n_users <= most:
        raise ValueError(f"n_users = {shortened(n_users)} cannot be right")
    answers: Paths | Vectors
    if isinstance(graph, ProductGraph):
        check_product(graph, n_users if store_users else 0)
        answers = Vectors(graph, n_users if store_users else 0, decode_constants(content["constants"]))
    else:
        answers = Paths(graph, n_users)
    parameters = decode_budgets(content) | {"edges": edges, "store_users": store_users}
    interactions = None
    if "n_interactions" in content:
        interactions = unpack_interactions(content, contents.arrays, n_users, answers.n_items)
    users = read_labels(contents, "user_labels", n_users)
    items = read_labels(contents, "item_labels", answers.n_items)
    parameters["keep_interactions"] = interactions is not None
    return Read(parameters, answers, n_users, users, items, interactions)


def decode_budgets(content: Mapping[str, Any]) -> dict[str, float]:
    """Return the budgets of a header: one of the two, or none."""
    found = {name: content[name] for name in _BUDGETS if name in content}
    for name, value in found.items():
        if type(value) not in (int, float):
            raise TypeError(f"{name} = {shortened(value)} cannot be right")
    if len(found) > 1:
        raise ValueError("there are two budgets")
    return found


def check_product(graph: ProductGraph, n_users: int) -> None:
    """Refuse a product that is not one of users and items, or of items alone."""
    if n_users and (graph.n_first != n_users or graph.places is not None or (graph.power, graph.gauge) != (1, 1)):
        raise ValueError(f"the product is not one of {n_users} users, and of items")
    if not n_users and not (
        all(isinstance(factor, GeometricFactor) for factor in graph.factors)
        and (graph.power, graph.gauge) == (2, 2)
        and graph.places is None
    ):
        raise ValueError("the product is not one of items with positions")
    if graph.length_grid is None:
        raise ValueError("lengths of the product are not on a grid")


def decode_constants(content: Any) -> Constants:
    """Return the constants of a header; ValueError or TypeError if they cannot be right."""
    if not isinstance(content, dict) or set(content) != set(_CONSTANTS):
        raise ValueError(f"constants should be {', '.join(_CONSTANTS)}, not {shortened(content)}")
    for name, value in content.items():
        if type(value) is not float:
            raise TypeError(f"{name} = {shortened(value)} cannot be right")
        check_number(name, value, -1e30 if name == "level" else 0.0, above=name == "scale")
    return Constants(**content)


def pack_interactions(met: csr_array) -> dict[str, NDArray[np.uint8]]:
    """Return who met what as two arrays; how often does not count.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from prodige.recommendation.saving import pack_interactions, unpack_interactions
    >>> met = csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32))
    >>> unpack_interactions({"n_interactions": 3}, pack_interactions(met), 3, 3).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    n_users, n_items = met.shape
    users = np.repeat(np.arange(n_users, dtype=np.int64), np.diff(met.indptr))
    numbers = users * n_items + met.indices
    bits, n_high = low_bits(n_users * n_items, numbers.size)
    low = pack_bits(numbers & ((1 << bits) - 1), bits) if bits else b""
    high = np.packbits(unary(numbers >> bits, n_high), bitorder="little")
    return {"met.high": high, "met.low": np.frombuffer(low, np.uint8)}


def unpack_interactions(
    content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_users: int, n_items: int
) -> csr_array:
    """Return what :func:`pack_interactions` packed; ValueError if it is none of these users and items."""
    n = count(content, "n_interactions", 0, n_users * n_items)
    bits, n_high = low_bits(n_users * n_items, n)
    encoding.check_array("met.high", arrays["met.high"], "uint8", packed_length(n_high + n, 1))
    encoding.check_array("met.low", arrays["met.low"], "uint8", packed_length(n, bits))
    ones = np.unpackbits(arrays["met.high"], bitorder="little")
    if ones[n_high + n :].any():
        raise ValueError("there are bits behind the last interaction")
    numbers = from_unary(ones[: n_high + n].astype(np.int64), n_high, n) << bits
    numbers |= unpack_bits(arrays["met.low"], bits, n)
    if n and ((np.diff(numbers) <= 0).any() or numbers[-1] >= n_users * n_items):
        raise ValueError(f"interactions are not in order, or not of {n_users} users and {n_items} items")
    users, items = np.divmod(numbers, n_items)
    offsets = np.searchsorted(users, np.arange(n_users + 1))
    return csr_array((np.ones(n, np.float32), items, offsets), shape=(n_users, n_items))


def low_bits(n_pairs: int, n: int) -> tuple[int, int]:
    """Return how many low bits are kept apart, and how many different high bits there are.

    Examples
    --------
    >>> from prodige.recommendation.saving import low_bits
    >>> low_bits(1000, 100)
    (3, 125)
    """
    bits = min(max(0, (n_pairs // max(n, 1)).bit_length() - 1), 30)
    return bits, ((n_pairs - 1) >> bits) + 1
