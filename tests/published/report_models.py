"""Compares steps of whole models on a virtual GPU with those that were measured on a real one.

    python tests/published/report_models.py MODELLED.csv MEASURED.csv [--check]

measure_models.py wrote both. Prints times and peaks of memory; `=` for equal ones. --check exits with status 1 if a
figure is outside the bounds below.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

PEAKS = ("requested", "allocated", "reserved")
# Bounds: the mean ratio of times, each ratio, and how many models have equal requested peaks.
MEAN, EACH, EQUAL_REQUESTED = 0.1, 0.3, 14


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    """Returns the rows of a table by model."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["model"]: row for row in csv.DictReader(file)}


def difference(modelled: int, measured: int) -> str:
    """Returns `=`, or by which share the modelled peak is off."""
    return "=" if modelled == measured else f"{modelled / measured - 1:+.1%}"


def main() -> int:
    """Prints the table, and returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("modelled", type=Path)
    options.add_argument("measured", type=Path)
    options.add_argument("--check", action="store_true")
    arguments = options.parse_args()
    modelled, measured = rows_of(arguments.modelled), rows_of(arguments.measured)
    ratios, equal = [], 0
    print("| model | requested | allocated | reserved | step, measured | modelled |\n|---|---|---|---|---|---|")
    for name, real in measured.items():
        model = modelled[name]
        peaks = [difference(int(model[f"{kind}_peak"]), int(real[f"{kind}_peak"])) for kind in PEAKS]
        equal += peaks[0] == "="
        ratio = float(model["step_ms"]) / float(real["step_ms"])
        ratios.append(ratio)
        step = f"{float(real['step_ms']):.1f} ms | {float(model['step_ms']):.1f} ms ({ratio - 1:+.0%})"
        print(f"| {name} | {' | '.join(peaks)} | {step} |")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\n{equal} of {len(ratios)} requested peaks are equal; modelled / measured time: {mean:.3f}, "
          f"{min(ratios):.2f} to {max(ratios):.2f}")  # fmt: skip
    holds = abs(mean - 1) <= MEAN and all(abs(ratio - 1) <= EACH for ratio in ratios) and equal >= EQUAL_REQUESTED
    return 0 if holds or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
