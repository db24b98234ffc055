"""What importing the package does, and that a long call can be interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    return result.stdout


def test_import_is_light() -> None:
    """No other library beyond NumPy, no threads, no random numbers drawn."""
    output = run("""
        import os, random, sys
        import numpy, torch

        def state():
            generators = numpy.random.get_state()[1].tobytes(), torch.random.get_rng_state().numpy().tobytes()
            return random.getstate(), generators, len(os.listdir("/proc/self/task"))

        before, loaded = state(), set(sys.modules)
        from prodige import Graph
        print(*{name.partition(".")[0] for name in set(sys.modules) - loaded} - set(sys.stdlib_module_names))
        assert state() == before
    """)
    assert set(output.split()) <= {"prodige", "numpy"}


def test_public_names() -> None:
    assert run("import prodige; print(*sorted(prodige.__all__))").strip() == " ".join(
        [
            "AnchorEmbedding",
            "DistanceCompressor",
            "Graph",
            "GraphEmbedding",
            "GraphRecommender",
            "GraphTextClassifier",
            "ProductEmbedding",
            "ProductGraph",
            "Sample",
            "__version__",
            "estimate_memory",
            "load",
        ]
    )


def test_interrupt_stops_a_long_call() -> None:
    code = textwrap.dedent("""
        import numpy as np, sys, time
        from prodige import Graph
        rng = np.random.default_rng(0)
        i, j = rng.integers(0, 200_000, (2, 2_000_000))
        graph = Graph.from_edges(i[i != j], j[i != j], rng.random((i != j).sum()))
        graph.distance(0, 1)
        try:
            print("ready", flush=True)
            graph.distances(np.arange(5_000), [0, 199_999], n_jobs=2)
        except KeyboardInterrupt:
            print("interrupted", graph.distance(0, 0), flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 0.0\n"
        assert time.monotonic() - start < 30  # the whole call takes many minutes
        assert process.wait(30) == 0
