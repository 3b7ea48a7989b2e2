"""Compares measured or modelled figures of operators with the published ones.

    python3 tests/published/report.py OUTPUT.csv... [--profile PROFILE.json] [--check]

OUTPUT.csv is written by measure.py. Prints the ratio to the published figure by operator: for times, as they are and
adjusted; for memory, the number of equal rows. Rows of held_out.csv name their card, and are listed by it. Rows of
measure_kernels.py need no adjustment.

Two differences between the published measurement and a call of PyTorch 2.11 are added to the times, from figures of
the profile:

- `nll_loss` of 2024's PyTorch ran with 32 threads, which go through the targets together, with two dependent loads
  forward and one backward. PyTorch 2.11 runs 1024 threads.
- Before each pass 256 MB were set to zero. L2 then holds lines that are not written to memory yet, and the pass waits
  for their way out. WRITTEN_SHARE of the cache is fitted.

--check exits with status 1 if an adjusted time or a figure of memory is outside the bounds below. Of held-out rows,
the operators of OTHER_KERNELS are listed, but have no bounds.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from ranges import ROOT, report_ranges

PROFILES = ROOT / "engine/devices/virtual_gpu/model/profiles"
A100 = PROFILES / "a100-80gb.json"
WRITTEN_SHARE = 0.42
OLD_THREADS, NEW_THREADS = 32, 1024

NEAR, FAR = 0.2, 0.4


@dataclass(frozen=True)
class Bounds:
    """Bounds of modelled over published times: of their geometric mean, and of the shares within NEAR and FAR."""

    mean: tuple[float, float]
    near_share: float
    far_share: float


FITTED = Bounds((0.95, 1.05), 0.9, 1)
HELD_OUT = Bounds((0.9, 1.1), 0.75, 0.9)
OF_KERNELS = Bounds((0.95, 1.05), 0.8, 0.94)

# PyTorch 2.11 looks up embeddings in another kernel (vectorized_gather_kernel) than that of 2024.
OTHER_KERNELS = {"embedding"}
ROUNDING = 1e-6  # published as float32


def targets(row: dict[str, str]) -> int:
    """Returns the number of targets of the loss that a row computes; 0 if it has none."""
    options = dict(word.split("=", 1) for word in row["shape"].split())
    if row["kernel"] == "cross_entropy":
        return int(options["B"]) * int(options["T"])
    return int(row["x"].split("=")[1]) if row["kernel"] == "fused_linear_cross_entropy" else 0


def is_of_kernels(row: dict[str, str]) -> bool:
    """Returns true for a row that measure_kernels.py has measured with the PyTorch of today."""
    return row["metric"].startswith("kernels")


def adjustment_ms(row: dict[str, str], profile: dict, written_share: float = WRITTEN_SHARE) -> float:
    """Returns the time that the published measurement has beyond a call of PyTorch 2.11."""
    if is_of_kernels(row):
        return 0
    memory = profile["memory"]
    bandwidth = memory["bytes_per_second"] * profile["efficiency"]["memory"]
    written = written_share * memory["l2_cache_bytes"] / bandwidth * 1e3
    rounds = math.ceil(targets(row) / OLD_THREADS) - math.ceil(targets(row) / NEW_THREADS)
    loads = {"forward": 2, "backward": 1, "full": 3}[row["mode"]]
    return written + rounds * loads * memory["latency_ns"] / 1e6


def is_time(row: dict[str, str]) -> bool:
    """Returns true for a row of a time, false for one of memory."""
    return not row["metric"].startswith("peak")


def mean(ratios: list[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def within(ratios: list[float], distance: float) -> int:
    """Returns how many ratios are at most `distance` from 1."""
    return sum(abs(ratio - 1) <= distance for ratio in ratios)


def line(name: str, plain: list[float], adjusted: list[float]) -> str:
    """Returns a line of the table."""
    return (
        f"| {name} | {len(adjusted)} | {mean(plain):.3f} | {mean(adjusted):.3f} | {min(adjusted):.2f} to "
        f"{max(adjusted):.2f} | {within(adjusted, NEAR)} |"
    )


def failures(times: list[float], memory: list[float], bounds: Bounds) -> list[str]:
    """Returns the bounds that do not hold, a sentence each."""
    found = []
    if not bounds.mean[0] <= mean(times) <= bounds.mean[1]:
        found.append(f"the geometric mean of times is {mean(times):.3f}")
    for distance, share in ((NEAR, bounds.near_share), (FAR, bounds.far_share)):
        if within(times, distance) < share * len(times):
            found.append(f"only {within(times, distance)} of {len(times)} times are within {distance:.0%}")
    if within(memory, ROUNDING) < len(memory):
        found.append(f"only {within(memory, ROUNDING)} of {len(memory)} figures of memory are equal")
    return found


@functools.cache
def profile_in(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def profile_of(row: dict[str, str], default: Path) -> dict:
    """Returns the profile of a row's card."""
    return profile_in(PROFILES / f"{row['device']}.json" if "device" in row else default)


def name_of(row: dict[str, str]) -> str:
    """Returns the operator of a row, with its card if the row has one."""
    return f"{row['kernel']}, {row['device']}" if "device" in row else row["kernel"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outputs", type=Path, nargs="+", metavar="OUTPUT.csv")
    parser.add_argument("--profile", type=Path, default=A100)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    rows: list[dict[str, str]] = []
    for output in arguments.outputs:
        with output.open(encoding="utf-8") as file:
            rows += csv.DictReader(file)
    plain: dict[str, list[float]] = {}
    adjusted: dict[str, list[float]] = {}
    bounded: list[float] = []
    for row in filter(is_time, rows):
        figure, published = float(row["modelled"]), float(row["published"])
        plain.setdefault(name_of(row), []).append(figure / published)
        ratio = (figure + adjustment_ms(row, profile_of(row, arguments.profile))) / published
        adjusted.setdefault(name_of(row), []).append(ratio)
        if row["kernel"] not in OTHER_KERNELS or is_of_kernels(row):
            bounded.append(ratio)
    memory = [float(row["modelled"]) / float(row["published"]) for row in rows if not is_time(row)]
    print("| operator | rows | modelled / published | adjusted | from, to | within 20 % |\n|---|---|---|---|---|---|")
    for name in plain:
        print(line(name, plain[name], adjusted[name]))
    print(line("all", *(list(itertools.chain.from_iterable(ratios.values())) for ratios in (plain, adjusted))))
    print(f"\nmemory: {within(memory, ROUNDING)} of {len(memory)} rows equal" if memory else "")
    print(
        f"times with bounds: {len(bounded)} rows, geometric mean {mean(bounded):.3f}, "
        f"{within(bounded, NEAR)} within {NEAR:.0%}, {within(bounded, FAR)} within {FAR:.0%}"
    )
    bounds = OF_KERNELS if is_of_kernels(rows[0]) else HELD_OUT if "device" in rows[0] else FITTED
    found = failures(bounded, memory, bounds)
    if bounds is OF_KERNELS:
        found += report_ranges((row["kernel"], float(row["modelled"]) / float(row["published"])) for row in rows)
    for failure in found:
        print(f"out of bounds: {failure}", file=sys.stderr)
    return 1 if arguments.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
