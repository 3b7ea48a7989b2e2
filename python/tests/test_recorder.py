"""`offprof.record` and `offprof.profile`, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, build_folder, write_policy

Report = Callable[..., dict[str, Any]]


def run_python(script: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAMS / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(build_folder() / "python")}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@pytest.fixture
def policies(tmp_path: Path, report_of: Report) -> list[str]:
    """Lossless policies: presets, and files with other thresholds, stashes and prefetch windows."""
    paths = ["keep", "offload", "trl"]
    for number, settings in enumerate(
        [{"threshold_bytes": 4096}, {"stash_count": 3, "prefetch_bytes": 65536}, {"prefetch_bytes": 16384}]
    ):
        path = tmp_path / f"policy{number}.json"
        paths.append(write_policy(path, f"policy {number}", **{"threshold_bytes": 0, **settings}))
    return paths


def test_gradients_are_bitwise_equal_under_every_lossless_policy(
    policies: list[str], tmp_path: Path, report_of: Report
) -> None:
    end = run_python("record_step.py", *policies, folder=tmp_path)
    assert end.returncode == 0, end.stderr
    result = json.loads(end.stdout)
    assert result["gradients"] == "bitwise"
    for name, measured in zip(policies, [result["measured"], *result["compared"]], strict=True):
        predicted = report_of("simulate", "record.json.gz", "--policy", name)["predicted"]
        for key in ("device_peak_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes"):
            assert (name, key, measured[key]) == (name, key, predicted[key])


def test_profile_records_steps_that_the_program_ends_itself_and_lets_it_train_on(
    tmp_path: Path, report_of: Report
) -> None:
    end = run_python("profile_loop.py", folder=tmp_path)
    assert end.returncode == 0, end.stderr
    trained, moved = end.stdout.split()
    assert int(trained) % 10 == 0
    assert moved == "True"
    assert report_of("view", "profile.json.gz")["policy"]["name"] == "offload"


def test_profile_that_ends_too_early_says_so(tmp_path: Path) -> None:
    program = """import gc, offprof
thresholds = gc.get_threshold()
try:
    with offprof.profile() as p:
        p.step()
finally:
    print(gc.get_threshold() == thresholds, gc.get_freeze_count())
"""
    (tmp_path / "short.py").write_text(program)
    end = run_python(str(tmp_path / "short.py"), folder=tmp_path)
    assert end.returncode == 1
    assert "before everything was recorded" in end.stderr
    assert end.stdout.split() == ["True", "0"]
