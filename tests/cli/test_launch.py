"""Commands that torchrun starts: each process has its rows, and what is killed goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from prodige.cli import app
from prodige.cli.launch import Launch, launched
from prodige.metric.sources import as_source

runner = CliRunner()
RNG = np.random.default_rng(0)
X = (3 * RNG.normal(size=(8, 3))[RNG.integers(0, 8, 1100)] + RNG.normal(size=(1100, 3))).astype(np.float32)
SETTINGS = ["--bits-per-item", "16", "--structure", "product", "--jobs", "1", "--quiet"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    return tmp_path


# -- what the launcher says


def test_torchrun_is_heard() -> None:
    environment = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    assert launched(environment) == Launch(1, 3)
    assert launched({**environment, "TORCHELASTIC_RESTART_COUNT": "0"}) == Launch(1, 3)
    assert launched({**environment, "TORCHELASTIC_RESTART_COUNT": "2"}) == Launch(1, 3, n_restarts=2)
    del environment["MASTER_PORT"]
    assert launched(environment) == Launch()  # set by somebody else, for something else


@given(st.integers(1, 40), st.integers(1, 8))
def test_rows_are_shared_out_in_order(n_rows: int, size: int) -> None:
    rows = np.arange(3.0 * n_rows).reshape(n_rows, 3)
    shares = [Launch(rank, size).share(rows) for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate(shares), rows)
    source = as_source(np.array_split(rows, 2) if n_rows > 1 else [rows])
    for rank, expected in enumerate(shares):
        part = Launch(rank, size).share(source)
        assert part.n_items == len(expected)
        if len(expected):
            np.testing.assert_array_equal(np.concatenate([found for _, found in part.blocks()]), expected)
            np.testing.assert_array_equal(part.take(np.arange(len(expected))), expected)


# -- checkpoints of a command


def test_a_checkpoint_is_gone_when_the_result_is_there(data: Path) -> None:
    options = [*SETTINGS, "--checkpoint", "fit.checkpoint", "--checkpoint-every", "0"]
    result = runner.invoke(app, ["compress", "x.npy", *options])
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir()) == ["x.npy", "x.prodige"]


def test_a_checkpoint_is_not_replaced_unasked(data: Path) -> None:
    Path("fit.checkpoint").write_text("a day's work")
    options = ["compress", "x.npy", *SETTINGS, "--checkpoint", "fit.checkpoint"]
    result = runner.invoke(app, options)
    assert result.exit_code == 1
    assert "fit.checkpoint exists; --resume goes on from it, --force begins anew" in result.output
    result = runner.invoke(app, [*options, "--resume"])
    assert result.exit_code == 1
    assert "does not start like one" in result.output
    assert Path("fit.checkpoint").read_text() == "a day's work"
    assert sorted(os.listdir()) == ["fit.checkpoint", "x.npy"]


def test_going_on_needs_a_checkpoint(data: Path) -> None:
    result = runner.invoke(app, ["compress", "x.npy", "--resume"])
    assert result.exit_code == 2
    assert "--checkpoint" in result.output


# -- several processes


def test_a_rank_that_is_killed_starts_again_and_ends_with_the_same_file(data: Path) -> None:
    assert runner.invoke(app, ["compress", "x.npy", "-o", "one.prodige", *SETTINGS]).exit_code == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    compress = ["-m", "prodige", "compress", "x.npy", "-o", "two.prodige", *SETTINGS]
    checkpoint = ["--checkpoint", "fit.checkpoint", "--checkpoint-every", "0"]
    with open("log", "wb") as log:
        process = subprocess.Popen(
            [*torchrun, *compress, *checkpoint], stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        while process.poll() is None and not Path("fit.checkpoint").exists():
            time.sleep(0.01)
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(ranks[-1]), signal.SIGKILL)
        assert process.wait(120) == 0, Path("log").read_text()
    assert Path("two.prodige").read_bytes() == Path("one.prodige").read_bytes()
    assert not Path("fit.checkpoint").exists()
