"""The rooms of the package: each can be entered by its own door, and the first step is a light one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import prodige

SOURCE = Path(prodige.__file__).parent
ROOMS = sorted(
    ".".join(("prodige", *path.parent.relative_to(SOURCE).parts))
    for path in SOURCE.rglob("__init__.py")
    if path.parent != SOURCE
)
SHARED = sorted(f"prodige.{path.stem}" for path in SOURCE.glob("*.py") if not path.stem.startswith("__"))

# Words that say nothing to whoever did not choose them.
METAPHORS = {"pool", "coins", "pace", "copies", "skeleton", "attachment", "affinity", "farfit", "pictures"}

# What takes long to import. All of these but rich may come with a room; none of them with the package.
HEAVY = ("torch", "scipy", "sklearn", "joblib", "matplotlib", "pandas", "tqdm", "rich", "typer", "threadpoolctl")


def loaded_by(statement: str) -> set[str]:
    """Return which of the heavy libraries a statement loads in a fresh process."""
    code = f"import sys\n{statement}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


IMPORTS = """
import os, sys, traceback
import torch, scipy.sparse, sklearn.base  # what takes long is loaded once, for all
for name in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            __import__(name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each room is entered by a fork")
def test_every_room_is_importable_alone() -> None:
    command = [sys.executable, "-c", IMPORTS, *ROOMS, *SHARED]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_a_room_that_cannot_be_entered_is_named() -> None:
    command = [sys.executable, "-c", IMPORTS.replace("import torch, scipy.sparse, sklearn.base", ""), "prodige.cellar"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "prodige.cellar\n"


@pytest.mark.parametrize("name", ["prodige", "prodige.graph", "prodige.graph.engine", "prodige.threads"])
def test_nothing_heavy_comes_with(name: str) -> None:
    assert loaded_by(f"import {name}") == set()


def test_no_module_is_named_after_a_metaphor() -> None:
    names = {path.stem for path in SOURCE.rglob("*.py")} | {room.rpartition(".")[2] for room in ROOMS}
    assert names & METAPHORS == set()
