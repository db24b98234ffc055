"""Examples as notebooks: ``python tools/notebooks.py`` writes docs/gallery/*.ipynb anew.

An example is a script that can be read from top to bottom: a docstring, imports and constants, functions, and ``main``.
In its notebook the docstring becomes the title and first words, the body of ``main`` is taken out of the function, and
each of its paragraphs that begins with a comment becomes a cell of text and a cell of code.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = ROOT / "docs" / "gallery"


def main() -> None:
    """Write all notebooks."""
    NOTEBOOKS.mkdir(parents=True, exist_ok=True)
    for script in sorted(EXAMPLES.glob("*.py")):
        (NOTEBOOKS / f"{script.stem}.ipynb").write_text(to_notebook(script), encoding="utf-8")


def to_notebook(script: Path) -> str:
    """Return the notebook of an example as JSON; the same script always gives the same text."""
    source = script.read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    (entry,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    title, _, words = (ast.get_docstring(tree) or "").partition("\n\n")

    # Between the docstring and main: imports, constants, functions.
    preface = "\n".join(lines[tree.body[0].end_lineno or 0 : entry.lineno - 1])
    preface = re.sub(r"^from __future__ .*\n", "", preface.strip("\n"), flags=re.MULTILINE)
    cells = [text_cell(f"# {title.rstrip('.')}\n\n{words}"), code_cell(preface.strip("\n"))]

    defaults = zip(entry.args.args, entry.args.defaults, strict=True)
    settings = "\n".join(f"{argument.arg} = {ast.unparse(value)}" for argument, value in defaults)
    cells.append(code_cell(settings))
    body = entry.body[1:] if ast.get_docstring(entry) else entry.body
    # A comment above the first statement belongs to it.
    first = (entry.body[0].end_lineno or 0) if body is not entry.body else entry.lineno
    cells += paragraphs(textwrap.dedent("\n".join(lines[first : entry.end_lineno])))
    picture = f'folder / "gallery-{script.stem}.png"'
    cells.append(code_cell(f"from IPython.display import Image\n\nImage(str({picture}))"))
    return render(cells)


def paragraphs(code: str) -> list[dict[str, Any]]:
    r"""Cut code before each comment that follows an empty line, and make text of the comment.

    Examples
    --------
    >>> from notebooks import paragraphs
    >>> [cell["source"] for cell in paragraphs("# One and one\na = 1 + 1\n\nb = a\n\n# Show it.\nprint(a)")]
    [['One and one'], ['a = 1 + 1\n', '\n', 'b = a'], ['Show it.'], ['print(a)']]
    """
    cells = []
    for part in re.split(r"\n\n+(?=# )", code.strip("\n")):
        comment, rest = re.fullmatch(r"((?:# ?[^\n]*\n)*)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        if comment:
            cells.append(text_cell(re.sub("^# ?", "", comment, flags=re.MULTILINE).strip()))
        cells.append(code_cell(rest.strip("\n")))
    return cells


def text_cell(text: str) -> dict[str, Any]:
    """Return a cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip().splitlines(keepends=True)}


def code_cell(code: str) -> dict[str, Any]:
    """Return a cell of Python that has not been run."""
    source = code.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def render(cells: list[dict[str, Any]]) -> str:
    """Return a notebook in version 4.5 of the format, which wants every cell to have an id."""
    notebook = {
        "cells": [cell | {"id": f"cell-{place}"} for place, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    main()
