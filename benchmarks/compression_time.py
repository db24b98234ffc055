"""How low the error of a graph gets in a given time, beside the best star and the paper's figures.

One data set of the paper, one budget; the graph is fitted anew for every time limit. Ratios are errors of the others
divided by that of the graph, so more is better.

    python benchmarks/compression_time.py [--dataset mnist10k] [--budget 4] [--seconds 2 5 10 20 40] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from prodige import DistanceCompressor, datasets
from prodige.baselines import Star
from prodige.metric.evaluation import mean_squared_error
from prodige.metric.space import Space
from prodige.provenance import provenance
from prodige.reproduce.table1 import BUDGETS, printed


def measure(data: datasets.Dataset, budget: int, limits: list[float], seed: int) -> list[dict[str, Any]]:
    """Fit a graph within each time limit."""
    space = Space(data.X)
    star = mean_squared_error(Star().fit(data.X), space)
    rows = []
    for limit in limits:
        began = time.perf_counter()
        compressor = DistanceCompressor(budget, structure="graph", max_time=limit, random_state=seed).fit(data.X)
        seconds = time.perf_counter() - began
        mse = mean_squared_error(compressor.graph_, space)
        ratios = {
            name: figure / mse
            for name, figure in (
                ("star", star),
                ("paper's PRODIGE", printed(budget, "PRODIGE", data.name)),
                ("paper's MDS", printed(budget, "MDS", data.name)),
            )
            if figure is not None
        }
        rows.append(
            {
                "max_time": limit,
                "seconds": seconds,
                "steps": len(compressor.history_),
                "numbers_per_item": compressor.graph_.numbers_per_item,
                "mse": mse,
                "ratios": ratios,
            }
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=datasets.NAMES, default="mnist10k")
    parser.add_argument("--data-dir", help="folder with the data; PRODIGE_DATA or a download when left out")
    parser.add_argument("--budget", type=int, choices=BUDGETS, default=4, help="numbers per item")
    parser.add_argument("--seconds", type=float, nargs="+", default=[2, 5, 10, 20, 40], help="time limits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    rows = measure(datasets.load(options.dataset, options.data_dir), options.budget, options.seconds, options.seed)
    if options.json:
        limits = " ".join(f"{limit:g}" for limit in options.seconds)
        command = (
            f"python benchmarks/compression_time.py --dataset {options.dataset} --budget {options.budget} "
            f"--seconds {limits} --seed {options.seed}"
        )
        print(json.dumps({"dataset": options.dataset, "budget": options.budget, "rows": rows, **provenance(command)}))
        return
    table = Table(title=f"{options.dataset} in {options.budget} numbers an item: error against time")
    headers = ["time limit, s", "taken, s", "steps", "mean squared error", *(f"× {name}" for name in rows[0]["ratios"])]
    for header in headers:
        table.add_column(header, justify="right")
    for row in rows:
        ratios = [f"{ratio:.2f}" for ratio in row["ratios"].values()]
        table.add_row(f"{row['max_time']:g}", f"{row['seconds']:.1f}", str(row["steps"]), f"{row['mse']:.5f}", *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
