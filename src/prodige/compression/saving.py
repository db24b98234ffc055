"""A fitted compressor as the content and the arrays of a file, and back.

Beside the graph a file keeps what placing new rows takes: the rows of the anchors, the unit of the fit and what the
metric took from the data. So ``transform``, ``insert``, ``score`` and ``kneighbors`` give the same before and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from prodige._validation import MAX_INT32, check_integer, check_number
from prodige.compression.budget import check_structure
from prodige.compression.objective import near_weight
from prodige.graph import container, file
from prodige.graph.header import as_json, shortened
from prodige.metric.space import Space, name_of

if TYPE_CHECKING:
    from prodige.compression.compressor import DistanceCompressor

# Parameters that a file keeps; the others are of no use to a compressor that is fitted.
PARAMETERS = (
    "numbers_per_item",
    "bits_per_item",
    "metric",
    "n_hubs",
    "structure",
    "objective",
    "metric_only",
    "method",
    "max_time",
)
# Of files that were written before there were products.
_EARLIER = {"bits_per_item": None, "structure": "auto", "objective": "distances", "metric_only": True}
STRUCTURES = ("product", "hubs", "neighbors", "complete", "star", "l0")
STOPPED = ("finished", "callback", "interrupt")

_KEYS = ("graph", "parameters", "structure", "stopped", "unit", "n_features", "rows", "lambda")
_SPARSE = {"csr_array": scipy.sparse.csr_array, "csr_matrix": scipy.sparse.csr_matrix}
_SPARSE_PARTS = ("data", "indices", "indptr")
# What a metric takes from the data, and its number of dimensions.
_OF_METRIC = {"seuclidean": {"V": 1}, "mahalanobis": {"VI": 2}}


def encode(model: DistanceCompressor) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a file holds, content and arrays."""
    if not isinstance(model.metric, str):
        raise ValueError(
            f"metric is a function, {name_of(model.metric)!r}, and files hold no code; save the graph alone with "
            "compressor.graph_.save, or use the name of a metric"
        )
    graph, arrays = file.encode(model.graph_)
    rows = model._anchor_rows
    is_sparse = scipy.sparse.issparse(rows)
    content = {
        "graph": graph,
        "parameters": {name: as_json(getattr(model, name)) for name in PARAMETERS},
        "structure": model.structure_,
        "stopped": model.stopped_,
        "unit": float(model._unit),
        "n_features": int(model.n_features_in_),
        "rows": ("csr_array" if isinstance(rows, scipy.sparse.sparray) else "csr_matrix") if is_sparse else "dense",
        "lambda": float(model.lambda_) if hasattr(model, "lambda_") else None,
    }
    arrays["anchors"] = model.anchors_.astype(np.int64)
    arrays |= {name: getattr(rows, name) for name in _SPARSE_PARTS} if is_sparse else {"rows": np.asarray(rows)}
    arrays |= model._parameters
    if hasattr(model, "feature_names_in_"):
        arrays["feature_names"] = container.pack_texts(model.feature_names_in_.tolist())
    return content, arrays


def decode(contents: container.Contents) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and fitted attributes of a compressor.

    Raises
    ------
    ValueError, TypeError or KeyError
        If they do not fit together; what is wrong with a file is the caller's to say.
    """
    content, arrays = contents.content, contents.arrays
    if set(content) != set(_KEYS):
        raise ValueError(f"a compressor has {', '.join(_KEYS)}")
    parameters = check_parameters(content["parameters"])
    metric = parameters["metric"]
    if content["structure"] not in STRUCTURES or content["stopped"] not in STOPPED:
        raise ValueError(f"it is {shortened(content['structure'])} and {shortened(content['stopped'])}")
    graph = file.decode(content["graph"], arrays)
    anchors = check_anchors(arrays["anchors"], graph.n_items)
    n_features = check_integer("n_features", content["n_features"], 1, MAX_INT32)
    if metric == "precomputed" and n_features != graph.n_items:
        raise ValueError(f"there are distances to {n_features} items, not to {graph.n_items}")
    shape = (anchors.size, anchors.size if metric == "precomputed" else n_features)
    fitted: dict[str, Any] = {
        "graph_": graph,
        "anchors_": anchors,
        "structure_": content["structure"],
        "stopped_": content["stopped"],
        "history_": [],
        "n_features_in_": n_features,
        "_unit": check_number("unit", content["unit"], 0, above=True),
        "_anchor_rows": decode_rows(content["rows"], arrays, shape),
        "_parameters": decode_metric(metric, arrays, n_features),
        "_is_unspent": False,
    }
    if content["lambda"] is not None:
        fitted["lambda_"] = check_number("lambda", content["lambda"])
    if "feature_names" in arrays:
        names = container.unpack_texts(arrays["feature_names"], n_features)
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    # Of a metric that is not known, or of rows that it cannot measure, it is said now.
    space = Space(fitted["_anchor_rows"], metric, fitted["_unit"], 1, fitted["_parameters"])
    if not np.isfinite(space.distances([0])).all():
        raise ValueError("the distances between anchors are not finite")
    return parameters, fitted


def check_parameters(parameters: Any) -> dict[str, Any]:
    """Return the parameters that a file holds."""
    if isinstance(parameters, dict) and set(parameters) == set(PARAMETERS) - set(_EARLIER):
        parameters = parameters | _EARLIER
    if not isinstance(parameters, dict) or set(parameters) != set(PARAMETERS):
        raise ValueError(f"the parameters should be {', '.join(PARAMETERS)}")
    for name, least in (("numbers_per_item", 1), ("bits_per_item", 0)):
        value = parameters[name]
        if value is not None and (type(value) not in (int, float) or not least < value < MAX_INT32):
            raise ValueError(f"{name} = {shortened(value)} cannot be right")
    if parameters["numbers_per_item"] is not None and parameters["bits_per_item"] is not None:
        raise ValueError("it has two budgets")
    near_weight(parameters["objective"])
    check_structure(parameters["structure"], parameters["n_hubs"], parameters["method"])
    if type(parameters["metric_only"]) is not bool:
        raise TypeError(f"metric_only = {shortened(parameters['metric_only'])} is neither true nor false")
    if not isinstance(parameters["metric"], str):
        raise TypeError(f"metric = {shortened(parameters['metric'])} is no name")
    if parameters["n_hubs"] != "auto":
        check_integer("n_hubs", parameters["n_hubs"], 1, MAX_INT32)
    if parameters["method"] not in ("budget", "l0"):
        raise ValueError(f"method = {shortened(parameters['method'])} is not known")
    if parameters["max_time"] is not None:
        check_number("max_time", parameters["max_time"], 0, above=True)
    return parameters


def check_anchors(anchors: NDArray[Any], n_items: int) -> NDArray[np.int64]:
    """Return the anchors: items, in order, each once."""
    if anchors.dtype != np.int64 or anchors.ndim != 1 or not anchors.size:
        raise ValueError(f"anchors should be whole numbers, not {anchors.dtype} of shape {anchors.shape}")
    if anchors[0] < 0 or anchors[-1] >= n_items or not (anchors[:-1] < anchors[1:]).all():
        raise ValueError(f"anchors are not in order, or not among {n_items} items")
    return anchors


def decode_rows(kind: Any, arrays: container.Arrays, shape: tuple[int, int]) -> Any:
    """Return the rows of the anchors."""
    if kind == "dense":
        rows: Any = arrays["rows"]
        numbers = rows
    elif kind in _SPARSE:
        numbers, indices, indptr = (arrays[name] for name in _SPARSE_PARTS)
        if any(part.ndim != 1 for part in (numbers, indices, indptr)):
            raise ValueError("a sparse matrix has parts of one dimension")
        if {indices.dtype, indptr.dtype} not in ({np.dtype(np.int32)}, {np.dtype(np.int64)}):
            raise ValueError(f"a sparse matrix has no indices of {indices.dtype} and {indptr.dtype}")
        rows = _SPARSE[kind]((numbers, indices, indptr), shape=shape)
        rows.check_format(full_check=True)
    else:
        raise ValueError(f"rows that are {shortened(kind)} are not known")
    if numbers.dtype not in (np.float32, np.float64) or rows.shape != shape:
        raise ValueError(f"rows should be {shape} numbers, not {rows.shape} of {numbers.dtype}")
    return rows


def decode_metric(metric: str, arrays: container.Arrays, n_features: int) -> dict[str, NDArray[np.float64]]:
    """Return what the metric took from the data of the fit."""
    result = {}
    for name, n_dimensions in _OF_METRIC.get(metric, {}).items():
        array = arrays[name]
        if array.dtype != np.float64 or array.shape != (n_features,) * n_dimensions or not np.isfinite(array).all():
            raise ValueError(f"{name} of metric {metric!r} cannot be {array.dtype} of shape {array.shape}")
        if name == "V" and not (array > 0).all():
            raise ValueError("variances should be above 0")
        result[name] = array
    return result
