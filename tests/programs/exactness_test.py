"""Checks the comparison of exactness.py with written figures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import exactness
import programs
import pytest
from offprof_command import CommandFailed, Offprof

FIGURES = dict.fromkeys(exactness.EXACT_KEYS, 1000)


@dataclass(frozen=True)
class FakeOffprof(Offprof):
    """Measures the same figures for each policy, and predicts what a test says. TRL's rules fail."""

    reason: str = "error: no memory"
    predicted: ClassVar[dict[str, Any]] = FIGURES

    def run(self, program: programs.Program, device: str, *flags: str) -> dict[str, Any]:
        if "trl" in flags:
            raise CommandFailed(self.reason)
        return {"measured": FIGURES}

    def simulate(self, trace: Path, *flags: str) -> dict[str, Any]:
        return {"predicted": self.predicted}


def test_equal_figures_do_not_differ() -> None:
    assert exactness.differences(FIGURES, dict(FIGURES)) == []


def test_a_program_that_fails_with_trl_must_fail_under_its_rules(tmp_path: Path) -> None:
    runs, fails = (programs.Program("p", "p.py", trl_fails=kinds) for kinds in ((), ("host",)))
    offprof = FakeOffprof(Path("offprof"), tmp_path, reason="error: p.py raised RuntimeError in step 6")
    assert exactness.check(offprof, runs, "host", ["trl"])["trl"] != []
    assert exactness.check(offprof, fails, "host", ["trl", "keep"]) == {"trl": [], "keep": []}
    (wrong,) = exactness.check(FakeOffprof(Path("offprof"), tmp_path), fails, "host", ["trl"])["trl"]
    assert wrong == "error: no memory"


@pytest.mark.parametrize("key", exactness.EXACT_KEYS)
def test_a_byte_is_a_difference(key: str) -> None:
    assert exactness.differences(FIGURES, {**FIGURES, key: 1001}) == [f"{key} +1 of 1000"]


def test_a_figure_that_only_one_side_has_is_a_difference() -> None:
    (difference,) = exactness.differences(FIGURES, {**FIGURES, "host_peak_bytes": None})
    assert difference == "host_peak_bytes: 1000 measured, None predicted"


def test_a_figure_that_the_device_lacks_is_none_on_both_sides() -> None:
    without = {**FIGURES, "device_allocated_peak_bytes": None}
    assert exactness.differences(without, without) == []


def test_a_failed_run_is_wrong_and_does_not_stop_the_others(tmp_path: Path) -> None:
    results = exactness.check(FakeOffprof(Path("offprof"), tmp_path), programs.PROGRAMS[0], "host", ["trl", "keep"])
    assert results == {"trl": ["error: no memory"], "keep": []}


def test_the_row_counts_the_exact_policies() -> None:
    row = exactness.row(programs.PROGRAMS[0], {"keep": [], "offload": ["d2h_bytes +1 of 1000"]})
    assert row.split(maxsplit=1) == ["mlp", "1 of 2 exact  offload: d2h_bytes +1 of 1000"]
