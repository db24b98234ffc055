"""Kill processes of a fit with ``kill -9`` at random moments, and see that it ends with the bits of an undisturbed one.

Twenty times one rank of two is killed: ``torchrun --max-restarts`` starts all again, and they go on from the last
checkpoint. Twenty times everything is killed, ``torchrun`` as well, and the command is given again. What is compared is
the file that is written in the end.

    python benchmarks/kills.py --times 20 --items 6000
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_RANKS = 2


def main() -> None:
    """Print a line for each run, and leave with an error if one of them ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="runs of each kind")
    parser.add_argument("--items", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.npy")
        generator = np.random.default_rng(arguments.seed)
        centres = 3 * generator.normal(size=(20, 8))
        rows = centres[generator.integers(0, 20, arguments.items)] + generator.normal(size=(arguments.items, 8))
        np.save(data, rows.astype(np.float32))
        began = time.perf_counter()
        expected = finish(Run(data, "undisturbed"))
        seconds = time.perf_counter() - began
        print(f"undisturbed: {seconds:.1f} s, {expected[:12]}", flush=True)
        kinds = {"one rank": kill_one, "everything": kill_all}
        n_same = dict.fromkeys(kinds, 0)
        for number in range(arguments.times):
            for kind, disturb in kinds.items():
                moment = moments.uniform(0.0, seconds)
                run = Run(data, f"{kind}-{number}")
                told = disturb(run, moment, moments)
                is_same = (found := finish(run)) == expected
                n_same[kind] += is_same
                print(f"{kind} after {moment:5.1f} s: {told}, {'same bits' if is_same else found}", flush=True)
        for kind, count in n_same.items():
            print(f"{kind}: {count} of {arguments.times} runs ended with the same bits")
        sys.exit(any(count < arguments.times for count in n_same.values()))


class Run:
    """A command that may be given more than once, and the processes it has started."""

    def __init__(self, data: Path, name: str) -> None:
        name = name.replace(" ", "-")
        self.output = data.with_name(f"{name}.prodige")
        self.log = data.with_name(f"{name}.log")
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={N_RANKS}"]
        # Bits so few that there are sweeps as well as lines, with a checkpoint after each.
        compress = ["compress", str(data), "--output", str(self.output), "--bits-per-item", "24", "--quiet"]
        settings = ["--structure", "product", "--jobs", "1", "--resume", "--checkpoint-every", "0"]
        checkpoint = ["--checkpoint", str(data.with_name(f"{name}.checkpoint"))]
        self.command = [*torchrun, "--max-restarts=3", "-m", "prodige", *compress, *settings, *checkpoint]
        self.start()

    def start(self) -> None:
        """Give the command."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, start_new_session=True, env=environment
            )


def finish(run: Run) -> str:
    """Wait for a run; return the digest of its file, or what it said where there is none."""
    if run.process.wait() == 0 and run.output.exists():
        return hashlib.sha256(run.output.read_bytes()).hexdigest()
    return f"failed: {run.log.read_text()[-2000:]}"


def kill_one(run: Run, moment: float, moments: random.Random) -> str:
    """Kill one rank, as soon as there are ranks."""
    until = time.perf_counter() + moment
    while run.process.poll() is None and (time.perf_counter() < until or not ranks_of(run.process.pid)):
        time.sleep(0.02)
    ranks = ranks_of(run.process.pid)
    if not ranks:
        return "it was over by then"
    os.kill(moments.choice(ranks), signal.SIGKILL)
    return "killed"


def kill_all(run: Run, moment: float, moments: random.Random) -> str:
    """Kill torchrun and all ranks, and give the command again."""
    time.sleep(moment)
    if run.process.poll() is not None:
        return "it was over by then"
    for pid in [run.process.pid, *ranks_of(run.process.pid)]:
        os.kill(pid, signal.SIGKILL)
    run.process.wait()
    run.start()
    return "killed and begun again"


def ranks_of(parent: int) -> list[int]:
    """Return the processes that torchrun has started."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return sorted(int(child) for child in children if is_rank(child))


def is_rank(pid: str) -> bool:
    """Whether this process runs the command itself."""
    try:
        return b"prodige" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    main()
