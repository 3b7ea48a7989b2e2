"""Measures the operators of a table of published figures on the current CUDA device, real or virtual.

    offprof exec --device virtual:a100-80gb -- python tests/published/measure.py tests/published/liger_a100.csv OUTPUT.csv

Times are taken as triton's `do_bench` took the published ones: before each pass 256 MB are set to zero, which empties
the L2 cache of the operands, and the time is the median of those between two events around the pass. Memory is the peak
of `torch.cuda.max_memory_allocated` over a forward and a backward pass.
"""

from __future__ import annotations

import argparse
import csv
import gc
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from operators import DEVICE, OPERATORS, Operator

# The cache that do_bench clears: 256 MB.
FLUSHED_ELEMENTS = 64_000_000

# The first pass differs from later ones: it creates the gradients that they add to, and cuBLAS's workspaces. On a
# virtual GPU the others are alike.
PASSES = 3


def parse_options(text: str) -> dict[str, str]:
    """Parses `B=8 T=2048`."""
    return dict(word.split("=", 1) for word in text.split())


def pass_of(operator: Operator, mode: str) -> Callable[[], object]:
    """Returns the function that a row measures."""
    if mode == "forward":
        return lambda: (operator.forward(), None)[1]
    if mode == "full":
        return lambda: operator.backward(operator.forward())
    result = operator.forward()
    return lambda: operator.backward(result)


def milliseconds(operator: Operator, mode: str, passes: int) -> float:
    """Returns the median time of a pass after the L2 cache was emptied; the first pass does not count."""
    flushed = torch.empty(FLUSHED_ELEMENTS, dtype=torch.int, device=DEVICE)
    run = pass_of(operator, mode)
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(passes)]
    for begin, end in events:
        for tensor in operator.cleared:
            tensor.grad = None
        flushed.zero_()
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events[1:])


def peak_mebibytes(operator: Operator, mode: str) -> float:
    """Returns the peak of allocated memory of a pass, after a first one."""
    run = pass_of(operator, mode)
    for _ in range(PASSES):
        torch.cuda.reset_peak_memory_stats()
        run()
    return torch.cuda.max_memory_allocated() / 2**20


def measure(row: dict[str, str], passes: int) -> float:
    """Returns the figure of this device for a row of the table."""
    operator = OPERATORS[row["kernel"]](int(row["x"].split("=")[1]), parse_options(row["shape"]))
    try:
        if row["metric"].startswith("peak allocated"):
            return peak_mebibytes(operator, row["mode"])
        return milliseconds(operator, row["mode"], passes)
    finally:
        del operator
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()  # the published rows are from processes of their own
        torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--kernels", default=",".join(OPERATORS), help="names, separated by commas")
    parser.add_argument("--device", help="take the rows of this profile only")
    parser.add_argument("--passes", type=int, default=PASSES, help="on a real GPU, 20 or more (default: %(default)s)")
    arguments = parser.parse_args()
    wanted = arguments.kernels.split(",")
    with arguments.table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["kernel"] in wanted]
    if arguments.device:
        rows = [row for row in rows if row["device"] == arguments.device]
    with arguments.output.open("w", buffering=1) as file:
        writer = csv.DictWriter(file, [*rows[0], "modelled"])
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"modelled": measure(row, arguments.passes)})


if __name__ == "__main__":
    main()
