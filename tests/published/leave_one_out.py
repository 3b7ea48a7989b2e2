"""Refits the cost model's constants with one family of operators left out, and reports that family's error.

    python tests/published/leave_one_out.py OFFPROF PYTHON FOLDER [--check]

The fitted constants are the three of the profile in CONSTANTS and the written share of report.py. Each fit minimizes
the squared logarithms of adjusted over published times by Gauss-Newton steps. The times are those of offprof itself:
measure.py runs the rows under a profile with changed constants. Derivatives are taken once, at the constants of the
committed profile.

A constant that no remaining row depends on keeps its value without a fit, which other sources give (CONSTANTS).

FOLDER gets the profiles, the tables of all runs, and left_out.csv, the rows of each family as modelled without it.

--check exits with status 1 if fewer than nine of ten left-out rows lie within the ranges of ranges.py, or if the fit to
all rows is far from the committed profile.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from kernels_only import kernels_only
from ranges import report_ranges
from report import A100, WRITTEN_SHARE, adjustment_ms, is_time, mean, within

HERE = Path(__file__).resolve().parent
TABLE = HERE / "liger_a100.csv"
# Constants in the profile: group, key, and the value of other sources than the table. `efficiency.compute`: the best
# product that stas00/ml-engineering (compute/accelerator/README.md) found on an A100 is 271 of 312 TFLOP/s.
# `efficiency.memory`: the triad of te42kyfo/gpu-benches reaches 1759 of 2039 GB/s. Without a figure for
# `elements_per_cycle`, kernels that load element by element are taken to be bound by memory alone.
CONSTANTS = {
    "compute": ("efficiency", "compute", 0.87),
    "memory": ("efficiency", "memory", 0.86),
    "elements": ("kernels", "elements_per_cycle", 1000.0),
}
WRITTEN = "written"
NAMES = [*CONSTANTS, WRITTEN]

DIFFERENCE = 0.04  # of the logarithm of a constant, for derivatives
UNDETERMINED = 0.02  # root mean square derivative over the rows of a family that depend least; see `solve`
MOST_STEPS = 2
CONVERGED = 0.015  # change of the logarithms
COMMITTED_WITHIN = 0.05  # of the constants that the profile states with two digits

Constants = dict[str, float]
Rows = list[dict[str, str]]


@dataclass
class Model:
    """The cost model as offprof runs it, with the rows of times of the table."""

    offprof: str
    python: str
    folder: Path
    rows: Rows
    profile: dict = field(default_factory=lambda: kernels_only(json.loads(A100.read_text(encoding="utf-8"))))
    known: dict[tuple[float, ...], list[float]] = field(default_factory=dict)

    def with_constants(self, constants: Constants) -> dict:
        """Returns the profile with these constants."""
        changed = copy.deepcopy(self.profile)
        for name, (group, key, _) in CONSTANTS.items():
            changed[group][key] = constants[name]
        return changed

    def committed(self) -> Constants:
        """Returns the constants of the committed profile and report."""
        found = {name: self.profile[group][key] for name, (group, key, _) in CONSTANTS.items()}
        return found | {WRITTEN: WRITTEN_SHARE}

    def times_ms(self, constants: Constants) -> list[float]:
        """Returns the modelled times of all rows, in their order."""
        key = tuple(constants[name] for name in CONSTANTS)
        if key not in self.known:
            self.known[key] = self.run(self.with_constants(constants), len(self.known))
        return self.known[key]

    def run(self, profile: dict, number: int) -> list[float]:
        """Runs measure.py under the profile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"profile-{number}.json"
        path.write_text(json.dumps(profile, indent=2), encoding="utf-8")
        rows, output = self.folder / "rows.csv", self.folder / f"times-{number}.csv"
        write_rows(rows, self.rows)
        measured = [self.python, str(HERE / "measure.py"), str(rows), str(output)]
        command = [self.offprof, "exec", "--device", f"virtual:{path}", "--", *measured]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with output.open(encoding="utf-8") as file:
            return [float(row["modelled"]) for row in csv.DictReader(file)]

    def ratios(self, constants: Constants) -> numpy.ndarray:
        """Returns adjusted over published times."""
        profile = self.with_constants(constants)
        return numpy.array(
            [
                (time + adjustment_ms(row, profile, constants[WRITTEN])) / float(row["published"])
                for row, time in zip(self.rows, self.times_ms(constants), strict=True)
            ]
        )

    def derivatives(self) -> numpy.ndarray:
        """Returns the derivatives of the ratios' logarithms by those of the constants, a column each."""
        at = self.committed()
        base = numpy.log(self.ratios(at))
        columns = []
        for name in NAMES:
            moved = at | {name: at[name] * math.exp(-DIFFERENCE)}
            columns.append((base - numpy.log(self.ratios(moved))) / DIFFERENCE)
        return numpy.stack(columns, axis=1)


@dataclass
class Fit:
    """Constants fitted to the rows of all families but `left_out`, and the ratios of all rows with them."""

    left_out: str  # empty: none
    constants: Constants
    undetermined: list[str]
    ratios: numpy.ndarray


def write_rows(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def bounded(name: str, value: float) -> float:
    """Returns the value within what a profile accepts; a share is at most 1."""
    return value if name == "elements" else min(value, 1.0)


def fit(model: Model, derivatives: numpy.ndarray, left_out: str) -> Fit:
    """Fits the constants that the remaining rows determine."""
    used = numpy.array([row["kernel"] != left_out for row in model.rows])
    strength = numpy.sqrt((derivatives[used] ** 2).mean(axis=0))
    free = [i for i in range(len(NAMES)) if strength[i] >= UNDETERMINED]
    undetermined = [name for i, name in enumerate(NAMES) if i not in free]
    constants = model.committed() | {name: CONSTANTS[name][2] for name in undetermined if name in CONSTANTS}
    for _ in range(MOST_STEPS):
        errors = numpy.log(model.ratios(constants))[used]
        step, *_ = numpy.linalg.lstsq(derivatives[numpy.ix_(used, free)], -errors, rcond=None)
        moved = {NAMES[i]: constants[NAMES[i]] * math.exp(change) for i, change in zip(free, step, strict=True)}
        constants |= {name: bounded(name, value) for name, value in moved.items()}
        if numpy.abs(step).max() < CONVERGED:
            break
    return Fit(left_out, constants, undetermined, model.ratios(constants))


def line(rows: Rows, one: Fit) -> str:
    """Returns the table's line of a fit: the error of the rows that it left out, or of all."""
    ratios = [ratio for row, ratio in zip(rows, one.ratios, strict=True) if one.left_out in ("", row["kernel"])]
    shown = [
        f"({one.constants[name]:.3g})" if name in one.undetermined else f"{one.constants[name]:.3g}" for name in NAMES
    ]
    return (
        f"| {one.left_out.replace('_', ' ') or 'nothing'} | {len(ratios)} | {mean(ratios):.3f} | {min(ratios):.2f} to "
        f"{max(ratios):.2f} | {within(ratios, 0.2)} | {' | '.join(shown)} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("offprof")
    parser.add_argument("python")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with TABLE.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if is_time(row)]
    model = Model(arguments.offprof, arguments.python, arguments.folder, rows)
    derivatives = model.derivatives()
    families = sorted({row["kernel"] for row in rows})
    print(f"| left out | rows | modelled / published | from, to | within 20 % | {' | '.join(NAMES)} |")
    print("|" + "---|" * (5 + len(NAMES)))
    left_out: list[tuple[dict[str, str], float]] = []
    for family in families:
        one = fit(model, derivatives, family)
        left_out += [(row, ratio) for row, ratio in zip(rows, one.ratios, strict=True) if row["kernel"] == family]
        print(line(rows, one), flush=True)
    every = fit(model, derivatives, "")
    print(line(rows, every))
    write_rows(
        arguments.folder / "left_out.csv", [row | {"modelled / published": str(ratio)} for row, ratio in left_out]
    )
    problems: list[str] = []
    problems += report_ranges([(row["kernel"], ratio) for row, ratio in left_out])
    for name, value in model.committed().items():
        if abs(math.log(every.constants[name] / value)) > COMMITTED_WITHIN:
            problems.append(f"the fit to all rows has {name} {every.constants[name]:.3g}, the committed one {value}")
    for problem in problems:
        print(f"out of bounds: {problem}", file=sys.stderr)
    return 1 if arguments.check and problems else 0


if __name__ == "__main__":
    sys.exit(main())
