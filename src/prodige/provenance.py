"""Where figures come from: the command, the commit and the machine, so that others can get them again."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent


def provenance(command: str) -> dict[str, Any]:
    """Return what to write beside figures; nothing in it says whose machine it was.

    Parameters
    ----------
    command : str
        How to get them again.

    Examples
    --------
    >>> from prodige.provenance import provenance
    >>> sorted(provenance("prodige reproduce sanity"))
    ['command', 'commit', 'machine', 'prodige']
    """
    from joblib import cpu_count

    machine = {
        "processor": processor(),
        "cores": int(cpu_count()),
        "python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
    }
    return {"command": command, "prodige": version("prodige"), "commit": commit(), "machine": machine}


def in_words(origin: dict[str, Any]) -> str:
    """Return provenance as a paragraph of Markdown."""
    machine = origin["machine"]
    return (
        f"Command: `{origin['command']}`. prodige {origin['prodige']}, commit {origin['commit'] or 'unknown'}; "
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, torch {machine['torch']}, "
        f"NumPy {machine['numpy']}."
    )


def commit(package: Path = PACKAGE) -> str | None:
    """Return the commit that this package is a checkout of, ``-dirty`` if files were changed; None elsewhere."""
    top = git(package, "rev-parse", "--show-toplevel")
    # Installed into an environment that lies inside another project, it is not that project's commit.
    if top is None or Path(top, "src", "prodige") != package.resolve():
        return None
    return git(package, "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty")


def git(folder: Path, *arguments: str) -> str | None:
    """Return what git says, None if it says nothing."""
    try:
        answer = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def processor() -> str:
    """Return the model of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
