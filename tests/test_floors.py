"""What the package requires: all that it imports is declared, and every floor is a version to install and try."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from floors import ROOT, as_key, constraints, floors

# Packages that are imported by another name than they are installed by, and those that are asked for by extras alone.
MODULES = {"sklearn": "scikit-learn", "faiss": "faiss-cpu", "face_recognition": "face-recognition"}


def imported() -> set[str]:
    """Return the packages that any module of the library imports, wherever it does so."""
    names: set[str] = set()
    for path in (ROOT / "src" / "prodige").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                names.add(node.module.partition(".")[0])
    return {MODULES.get(name, name) for name in names - sys.stdlib_module_names - {"prodige"}}


def test_all_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [entry for entries in project["optional-dependencies"].values() for entry in entries]
    declared = {re.split(r"[^\w.-]", entry)[0] for entry in (*project["dependencies"], *extras)}
    assert imported() <= declared


def test_floors_are_not_above_what_was_tested() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    tested = {as_key(name): version for name, version in pinned.items()}

    def parts(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    for name, floor in floors().items():
        assert parts(floor) <= parts(tested[as_key(name)]), name


def test_constraints_name_every_package_once() -> None:
    names = [as_key(line.partition("==")[0]) for line in constraints()]
    assert len(names) == len(set(names))
    assert set(map(as_key, floors())) <= set(names)
    assert f"scikit-learn=={floors()['scikit-learn']}" in constraints()


def test_what_has_no_floor_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(re.sub(r'"numpy>=[\d.]+"', '"numpy"', text), encoding="utf-8")
    with pytest.raises(ValueError, match="'numpy' has no lowest version"):
        floors(tmp_path)
