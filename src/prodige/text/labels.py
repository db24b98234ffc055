"""Labels of texts: what they may be, how much each class counts, and how a file keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from prodige.graph.container import pack_texts, unpack_texts
from prodige.graph.header import shortened

# Kinds of labels that a file can hold, as NumPy names them.
_LABELS = "biufUM"
# Bytes that the labels of all texts may take, and those of all classes.
_MOST_BYTES = 2**32
_MOST_LABELS = 2**28

# Types of labels that a file can hold.
_CLASS_TYPES = {
    *("U", "b1", "f2", "f4", "f8"),
    *(f"{kind}{n_bytes}" for kind in "iu" for n_bytes in (1, 2, 4, 8)),
    *(f"M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")),
}


def check_labels(y: ArrayLike, n_texts: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes, and the number of its class for each text."""
    if isinstance(y, (list, tuple)):  # NumPy gives every text the room of the longest
        longest = max((len(label) for label in y if isinstance(label, str)), default=0)
        if 4 * longest * len(y) > _MOST_BYTES:
            raise ValueError(
                f"y has {len(y)} labels, one of {longest} letters: together they take "
                f"{4 * longest * len(y) / 2**30:.3g} GiB; give shorter labels, numbers for example"
            )
    labels = column_or_1d(y, warn=True)
    if isinstance(y, (list, tuple)) and labels.dtype.kind == "U" and not all(isinstance(label, str) for label in y):
        labels = np.array(y, dtype=object)  # NumPy made texts of the numbers among them
    if labels.size != n_texts:
        raise ValueError(f"y must have one label per text ({n_texts}), got {labels.size}")
    missing = [place for place, label in enumerate(labels) if label is None or label != label]
    if missing:
        raise ValueError(
            f"y[{missing[0]}] = {labels[missing[0]]} ({len(missing)} such labels) is no class; drop the text"
        )
    if labels.dtype.kind == "O":  # as columns of pandas often are, whatever is in them
        kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in labels})
        if len(kinds) > 1:
            raise TypeError(f"y has labels of different types ({', '.join(kinds)}); make them all strings")
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in _LABELS or (labels.dtype.kind == "f" and labels.dtype.itemsize > 8):
        found = type(labels[0]).__name__ if labels.dtype.kind == "O" else labels.dtype
        raise TypeError(
            f"y has labels of type {found}, which a file cannot hold; make them texts, numbers or dates of NumPy"
        )
    check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}: there is nothing to tell apart")
    return classes, numbers.astype(np.int64)


def check_class_weight(
    class_weight: str | Mapping[Any, float] | None, labels: NDArray[Any], classes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the weight of each class in the loss.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.labels import check_class_weight
    >>> check_class_weight({"good": 3}, np.array(["bad", "good"]), np.array([0, 1, 1]))
    array([1., 3.])
    """
    if class_weight is not None and not isinstance(class_weight, (str, Mapping)):
        raise TypeError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}")
    if isinstance(class_weight, Mapping):
        # Not by scikit-learn, which takes the label "1" for the number 1.
        place = dict(zip([*labels, *labels.tolist()], [*range(labels.size)] * 2, strict=True))
        weights = np.ones(labels.size)
        for label, weight in class_weight.items():
            if label not in place:
                raise ValueError(
                    f"class_weight has {shortened(label)}, a {type(label).__name__}, which is none of the "
                    f"{labels.size} classes; the first is {labels.tolist()[0]!r}"
                )
            if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)):
                raise TypeError(f"class_weight[{label!r}] must be a number, got {weight!r}")
            if not 0 < np.float32(weight) < np.inf:
                raise ValueError(
                    f"class_weight[{label!r}] must be a finite number above 0, got {weight!r}; "
                    "leave out the texts of a class that is not to count"
                )
            weights[place[label]] = weight
        return weights
    return np.asarray(compute_class_weight(class_weight, classes=labels, y=labels[classes]), dtype=np.float64)


def encode_classes(classes: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the type of labels and an array of them for a file; :func:`decode_classes` reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from prodige.text.labels import encode_classes
    >>> encode_classes(np.array(["2019-12-08", "2019-12-14"], dtype="datetime64[D]"))
    ('M8[D]', array([18238, 18244]))
    """
    kind = "U" if classes.dtype.kind == "U" else classes.dtype.str[1:]
    if kind not in _CLASS_TYPES:
        raise TypeError(f"labels of type {classes.dtype} cannot be saved; make them texts or numbers")
    if classes.nbytes > _MOST_LABELS:
        raise ValueError(
            f"{classes.size} different labels, the longest of {classes.dtype.itemsize // 4} letters, take "
            f"{classes.nbytes} bytes, more than {_MOST_LABELS}; give shorter labels, numbers for example"
        )
    if kind == "U":
        return kind, pack_texts(classes.tolist())
    return kind, classes.astype(np.int64) if kind[0] == "M" else classes


def decode_classes(kind: Any, array: NDArray[Any], n: int) -> NDArray[Any]:
    """Return ``n`` labels, different and in order, of one of the types that are written."""
    if not isinstance(kind, str) or kind not in _CLASS_TYPES:
        raise ValueError(f"classes of type {shortened(kind)} are not known")
    if kind == "U":
        texts = unpack_texts(array, n)
        if 4 * n * max(map(len, texts), default=0) > _MOST_LABELS:
            raise ValueError("the classes are too long")
        classes = np.array(texts)
    else:
        if array.dtype != np.dtype(np.int64 if kind[0] == "M" else kind) or array.shape != (n,):
            raise ValueError(f"{n} classes of type {kind} are not an array of {array.dtype} of shape {array.shape}")
        classes = array.astype(kind)
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes are not in order")
    return classes
