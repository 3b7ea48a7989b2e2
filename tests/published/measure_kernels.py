"""Measures the kernels of operators on a real GPU with PyTorch's profiler, which needs no offprof.

    python3 tests/published/measure_kernels.py OUTPUT.csv TABLE.csv... [--names NAMES.json.gz]

OUTPUT.csv gets the rows of the tables, those of memory and of `full` passes left out. Their figure is the sum of the
times of the kernels of one pass, in milliseconds: without launch gaps and without the host, on which the times of
measure.py depend if the kernels are short. Before each pass 256 MB are set to zero, which empties the L2 cache. The
column of the figure is `published`, as in the other tables. A row whose passes run different kernels is left out.

NAMES.json.gz gets the name and the time, in nanoseconds, of each kernel.
"""

from __future__ import annotations

import argparse
import csv
import gc
import gzip
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from measure import FLUSHED_ELEMENTS, parse_options, pass_of
from operators import DEVICE, OPERATORS
from torch.profiler import ProfilerActivity, profile

PASSES = 3
METRIC = "kernels, ms"


def kernels_of(row: dict[str, str], flushed: torch.Tensor) -> list[tuple[str, float]] | None:
    """Returns name and time, in nanoseconds, of each kernel of a pass: the median of several passes. None: they run
    different kernels."""
    operator = OPERATORS[row["kernel"]](int(row["x"].split("=")[1]), parse_options(row["shape"]))
    run = pass_of(operator, row["mode"])

    def one_pass() -> None:
        for tensor in operator.cleared:
            tensor.grad = None
        flushed.zero_()
        run()

    for _ in range(PASSES):
        one_pass()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        for _ in range(PASSES):
            one_pass()
        torch.cuda.synchronize()
    events: list[Any] = [
        event for event in profiler.profiler.kineto_results.events() if "CUDA" in str(event.device_type())
    ]
    events.sort(key=lambda event: event.start_ns())
    count = len(events) // PASSES
    passes = [events[i * count : (i + 1) * count] for i in range(PASSES)]
    names = [[event.name() for event in events] for events in passes]
    if any(other != names[0] for other in names):
        return None
    times = [statistics.median(event.duration_ns() for event in same) for same in zip(*passes, strict=True)]
    return list(zip(names[0], times, strict=True))[1:]  # without the one that empties the cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--names", type=Path)
    parser.add_argument("--profile", default="h100-80gb", help="profile of this GPU (default: %(default)s)")
    arguments = parser.parse_args()
    flushed = torch.empty(FLUSHED_ELEMENTS, dtype=torch.int, device=DEVICE)
    measured, named = {}, []
    for table in arguments.tables:
        with table.open() as file:
            for row in csv.DictReader(file):
                key = tuple(row[name] for name in ("kernel", "mode", "x", "shape"))
                if row["metric"].startswith("peak") or row["mode"] == "full" or key in measured:
                    continue
                kernels = kernels_of(row, flushed)
                if kernels is None:
                    print(f"left out: {key}", file=sys.stderr)
                    continue
                measured[key] = sum(time for _, time in kernels) / 1e6
                named.append({"row": key, "kernels": kernels})
                gc.collect()
                torch.cuda.empty_cache()
    with arguments.output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["device", "kernel", "mode", "x", "shape", "metric", "published"])
        for key, ms in measured.items():
            writer.writerow([arguments.profile, *key, METRIC, round(ms, 6)])
    if arguments.names:
        with gzip.open(arguments.names, "wt", encoding="utf-8") as file:
            json.dump(named, file, separators=(",", ":"))


if __name__ == "__main__":
    main()
