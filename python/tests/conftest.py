"""Fixtures of the Python tests. CTest sets OFFPROF_BUILD to the build folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"


def build_folder() -> Path:
    """Returns the build folder with the program and the extension."""
    default = Path(__file__).resolve().parents[2] / "build"
    return Path(os.environ.get("OFFPROF_BUILD", default))


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def offprof(tmp_path: Path) -> Run:
    """A function that runs the program `offprof` with arguments, in an empty folder."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(build_folder() / "offprof"), *map(str, arguments)]
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)

    return run


@pytest.fixture
def report_of(offprof: Run) -> Callable[..., dict[str, Any]]:
    """A function that runs `offprof ... --format json`, which must succeed, and returns the report."""

    def run(*arguments: object) -> dict[str, Any]:
        command, *rest = arguments
        end = offprof(command, "--format", "json", *rest)
        assert end.returncode == 0, end.stderr
        report: dict[str, Any] = json.loads(end.stdout[end.stdout.index('{\n  "schema"') :])
        return report

    return run


def write_policy(path: Path, name: str, **settings: Any) -> str:
    """Writes a policy file and returns its path. Without settings, the policy offloads nothing."""
    policy = {
        "name": name,
        "scheduler": "offload",
        "threshold_bytes": None,
        "tensors": None,
        "stash_count": None,
        "stash_bytes": None,
        "prefetch_bytes": 0,
        "copy_streams": 1 if settings.get("scheduler") == "trl" else 2,
        "host_memory_bytes": None,
        **settings,
    }
    path.write_text(json.dumps({"schema": "offprof.policy/1", "policy": policy}))
    return str(path)
