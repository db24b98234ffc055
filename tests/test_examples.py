"""Every example runs and makes its picture, and its notebook says the same."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

import notebooks

EXAMPLES = sorted(notebooks.EXAMPLES.glob("*.py"))
SMALL: dict[str, dict[str, Any]] = {"digits_compression": {"n_images": 300}}
PNG = b"\x89PNG\r\n\x1a\n"

each_example = pytest.mark.parametrize("script", EXAMPLES, ids=[script.stem for script in EXAMPLES])


@each_example
def test_runs_and_draws(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script))["main"](tmp_path, **SMALL.get(script.stem, {}))
    picture = tmp_path / f"gallery-{script.stem}.png"
    assert picture.read_bytes().startswith(PNG)
    assert picture.stat().st_size > 10_000  # more than empty axes
    assert capsys.readouterr().out


@each_example
def test_notebook_is_up_to_date_and_valid(script: Path) -> None:
    text = (notebooks.NOTEBOOKS / f"{script.stem}.ipynb").read_text(encoding="utf-8")
    assert text == notebooks.to_notebook(script), "make gallery writes the notebooks anew"
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert cell.source.strip()
        if cell.cell_type == "code":
            compile(cell.source, script.stem, "exec")


def test_notebook_does_what_its_example_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells in order, in one namespace: names must not be lost when the body of main is cut up."""
    script = notebooks.EXAMPLES / "road_network.py"
    cells = json.loads(notebooks.to_notebook(script))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for source in code[:-1]:  # the last one shows the picture, which needs IPython
        exec(source, namespace)
    assert namespace["worst"] < 1e-4
    assert (tmp_path / "demo" / "gallery-road_network.png").exists()


def test_no_notebook_without_example() -> None:
    assert {path.stem for path in notebooks.NOTEBOOKS.glob("*.ipynb")} == {script.stem for script in EXAMPLES}


def test_gallery_shows_every_example() -> None:
    page = (notebooks.NOTEBOOKS / "index.md").read_text(encoding="utf-8")
    for script in EXAMPLES:
        for part in (f"../../examples/{script.name}", f"{script.stem}.ipynb", f"../figures/gallery-{script.stem}.png"):
            assert f"({part})" in page
        assert (notebooks.ROOT / "docs" / "figures" / f"gallery-{script.stem}.png").exists()
