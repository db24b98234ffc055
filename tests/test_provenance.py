"""Where figures come from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import prodige
from prodige import __version__
from prodige import provenance as origin


def test_provenance() -> None:
    found = origin.provenance("prodige reproduce nothing")
    assert found["prodige"] == __version__
    assert found["machine"]["cores"] >= 1
    text = origin.in_words(found)
    for shown in ("`prodige reproduce nothing`", __version__, found["machine"]["processor"], found["machine"]["torch"]):
        assert shown in text
    assert str(Path.home()) not in text


def test_the_package_is_that_of_the_checkout() -> None:
    assert Path(prodige.__file__).parent == origin.PACKAGE
    if (origin.PACKAGE.parents[1] / ".git").exists():
        assert origin.commit() is not None


def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src" / "prodige"
    package.mkdir(parents=True)
    (package / "a.py").touch()
    assert origin.commit(package) is None

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    commit = origin.commit(package)
    assert commit
    assert git("rev-parse", "HEAD").startswith(commit)
    (package / "a.py").write_text("changed")
    assert origin.commit(package) == f"{commit}-dirty"

    # Installed somewhere inside another project.
    inside = tmp_path / "env" / "prodige"
    inside.mkdir(parents=True)
    assert origin.commit(inside) is None

    monkeypatch.setenv("PATH", "")
    assert origin.commit(package) is None
