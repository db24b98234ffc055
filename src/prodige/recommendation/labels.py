"""Names of users and items: checked when they come in, and when they come out of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prodige.graph import container


def check_room(name: str, labels: list[str] | None) -> None:
    """Refuse labels that no file has room for, before there is a model that cannot be saved."""
    n_bytes = sum(len(label.encode("utf-8", "surrogatepass")) for label in labels or ())
    if n_bytes > container.MAX_TEXTS:
        raise ValueError(
            f"{name} take {n_bytes} bytes in a file, at most {container.MAX_TEXTS} are possible; "
            "fit without them and keep them in a file of their own, or make them shorter"
        )


def read_labels(contents: container.Contents, name: str, n: int) -> list[str] | None:
    """Return the labels in a file, if it has any: an array of texts, or what a file of version 1 had in its header."""
    if name in contents.arrays:
        return container.unpack_texts(contents.arrays[name], n)
    return check_labels(name, contents.content.get(name), n)


def check_labels(name: str, labels: Any, n: int) -> list[str] | None:
    """Return names as a list of text, one for each user or item."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a list of text, got {labels!r}")
    result = list(labels)
    if len(result) != n:
        raise ValueError(f"{name} must have {n} entries, one for each, got {len(result)}")
    wrong = [label for label in result if not isinstance(label, str)]
    if wrong:
        raise TypeError(f"{name} must be text, got {wrong[0]!r}; convert with map(str, ...)")
    return [str(label) for label in result]  # text of numpy is a kind of its own
