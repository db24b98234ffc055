r"""Docstrings as Markdown: an extension of griffe, which reads the API reference out of the source.

Docstrings here are NumPy's, written in reStructuredText; pages are Markdown. Roles become links where the site has what
they name, double backquotes become single ones, formulas and tables what Markdown can show:

>>> from docstring_markdown import to_markdown
>>> to_markdown(":math:`p_e` of ``edges``")
'`p_e` of `edges`'
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":(?P<role>[a-z]+):`(?P<short>~?)(?P<name>[^`]+)`")
_FORMULA = re.compile(r"^(?P<indent> *)\.\. math:: (?P<first>.*(?:\n(?P=indent) +\S.*)*)", re.MULTILINE)
_TABLE = re.compile(r"^(?P<rule>=+(?:  +=+)+)\n(?P<head>.*)\n(?P=rule)\n(?P<body>(?:.+\n)+?)(?P=rule)$", re.MULTILINE)
# Names of what modules call each other by: the site has them under the module that defines them.
_PACKAGE = "prodige."


class DocstringMarkdown(Extension):
    """Rewrites each docstring once it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, within=obj.canonical_path)


def to_markdown(text: str, within: str = "") -> str:
    r"""Return a docstring with Markdown where it had reStructuredText.

    Parameters
    ----------
    text : str
        The docstring, without the indentation of its place.
    within : str
        Full name of what it describes; names without a dot are looked for there.

    Examples
    --------
    >>> from docstring_markdown import to_markdown
    >>> to_markdown("See :class:`~prodige.graph.graph.Graph`.")
    'See <autoref identifier="prodige.graph.graph.Graph" optional><code>Graph</code></autoref>.'
    >>> print(to_markdown("====  ====\na     b\n====  ====\n1     x|y\n====  ===="))
    | a | b |
    | --- | --- |
    | 1 | x\|y |
    """
    text = _TABLE.sub(table, text)
    text = _FORMULA.sub(formula, text)
    text = _ROLE.sub(lambda match: link(match, within), text)
    return re.sub(r"(?<!`)``(?!`)([^`]+)``(?!`)", r"`\1`", text)


def link(match: re.Match[str], within: str) -> str:
    """Return a link to what a role names, where the site has it; a formula as it is written."""
    name: str = match["name"]
    if match["role"] == "math":
        return f"`{name}`"
    shown = name.rpartition(".")[2] if match["short"] else name.removeprefix(_PACKAGE)
    full = name if "." in name or not within else f"{within}.{name}"
    return f'<autoref identifier="{escape(full)}" optional><code>{escape(shown)}</code></autoref>'


def formula(match: re.Match[str]) -> str:
    """Return a formula as a block of code: nothing on the page needs a script to be read."""
    indent: str = match["indent"]
    lines = [line.strip() for line in match["first"].split("\n")]
    return "\n".join(f"{indent}{line}" for line in ["```tex", *lines, "```"])


def table(match: re.Match[str]) -> str:
    """Return a simple table as one of Markdown; columns begin where the rule's do."""
    starts = [column.start() for column in re.finditer("=+", match["rule"])]
    rows = []
    for line in [match["head"], *match["body"].rstrip("\n").split("\n")]:
        ends = [*starts[1:], len(line)]
        rows.append([line[start:end].strip().replace("|", r"\|") for start, end in zip(starts, ends, strict=True)])
    rows.insert(1, ["---"] * len(starts))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
