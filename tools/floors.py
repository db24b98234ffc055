"""The lowest versions that pyproject.toml allows, as constraints for pip: what ``make test-minimum`` installs.

They are written once, in pyproject.toml. What users can install counts, extras included; the tools of developers, and
all that comes with other packages, are those of constraints.txt.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

EXTRAS = ("networkx", "ann", "hyperbolic", "tables", "recommend", "plot")

_FLOOR = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def floors(root: Path = ROOT) -> dict[str, str]:
    """Return the lowest version of each package.

    Examples
    --------
    >>> from floors import floors
    >>> "numpy" in floors()
    True
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = {}
    for requirement in (*project["dependencies"], *(entry for name in EXTRAS for entry in extras[name])):
        floor = _FLOOR.fullmatch(requirement)
        if floor is None:
            raise ValueError(f"{requirement!r} has no lowest version; write it as name>=version")
        found[floor["name"]] = floor["version"]
    return found


def constraints(root: Path = ROOT) -> list[str]:
    """Return the lines of a file of constraints: floors, and what was tested of everything else.

    Examples
    --------
    >>> from floors import constraints
    >>> sum(line.startswith("numpy==") for line in constraints())
    1
    """
    lowest = floors(root)
    names = {as_key(name) for name in lowest}
    pinned = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    others = [line for line in pinned if "==" in line and as_key(line.partition("==")[0]) not in names]
    return [*(f"{name}=={version}" for name, version in lowest.items()), *others]


def as_key(name: str) -> str:
    """Return the name of a package as it is compared: ``scikit_learn`` is ``scikit-learn``."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    print(*constraints(), sep="\n")
