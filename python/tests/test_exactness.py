"""A recording predicts memory and copies of the same script under other policies, to the byte."""

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

POLICIES: dict[str, dict[str, Any]] = {
    "keep": {},
    "offload": {"threshold_bytes": 0},
    "trl": {"scheduler": "trl", "threshold_bytes": 1024, "stash_count": 5},
    "trl with another stash": {"scheduler": "trl", "threshold_bytes": 1024, "stash_count": 10},
    "threshold": {"threshold_bytes": 16384},
    "stash": {"threshold_bytes": 0, "stash_count": 5},
    "prefetch": {"threshold_bytes": 0, "prefetch_bytes": 262144},
    "threshold, stash and prefetch": {"threshold_bytes": 4096, "stash_count": 3, "prefetch_bytes": 1048576},
}
EXACT = [
    "device_peak_bytes",
    "device_resident_bytes",
    "device_allocated_peak_bytes",
    "host_peak_bytes",
    "d2h_bytes",
    "h2d_bytes",
]

Report = Callable[..., dict[str, Any]]


def run_python(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(build_folder() / "python")}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def policy_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of files with the policies, by name."""
    folder = tmp_path_factory.mktemp("policies")
    paths = {}
    for number, (name, settings) in enumerate(POLICIES.items()):
        paths[name] = write_policy(folder / f"{number}.json", name, **settings)
    return paths


@pytest.fixture(scope="module")
def request_text(policy_files: dict[str, str]) -> str:
    """A request to record a program and to measure it under all policies."""
    make = (
        "import sys; from offprof.native import load_extension; print(load_extension().make_request("
        "'program', 'host', sys.argv[1:], 2, 1, 1, 'trace.json.gz', 'outcome.json'))"
    )
    return run_python("-c", make, *policy_files.values()).stdout


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
@pytest.mark.parametrize("program", ["mlp", "transformer", "gan", "reentrant", "gradient_penalty", "left_graphs"])
def test_predicts_runs_of_the_script_under_eight_policies(
    program: str,
    device: str,
    request_text: str,
    policy_files: dict[str, str],
    tmp_path: Path,
    report_of: Report,
) -> None:
    request = json.loads(request_text)
    request["run"].update(program=str(PROGRAMS / f"{program}.py"), device=device)
    files = policy_files
    if program in ("gradient_penalty", "left_graphs"):  # TRL returns each saved tensor once, so it cannot run these
        request["compared"] = [each for each in request["compared"] if each.get("scheduler") != "trl"]
        files = {name: file for name, file in files.items() if POLICIES[name].get("scheduler") != "trl"}
    if device != "host":
        libraries = str(build_folder() / "virtual_gpu")
        gpu = {"profile": "h200", "libraries": libraries, "balanced_experts": False, "cluster": ""}
        request["virtual_gpu"] = gpu
    trace, outcome, path = (tmp_path / name for name in ("trace.json.gz", "outcome.json", "request.json"))
    path.write_text(json.dumps({**request, "trace_path": str(trace), "outcome_path": str(outcome)}))
    end = run_python(build_folder() / "python" / "offprof" / "launcher.py", path)
    assert end.returncode == 0, end.stderr + outcome.read_text()

    measured = {run["policy"]["name"]: run["measured"] for run in json.loads(outcome.read_text())["compared"]}
    measured["keep"] = report_of("view", trace)["measured"]
    differences = {}
    for name, file in files.items():
        predicted = report_of("simulate", trace, "--policy", file)["predicted"]
        for key in EXACT:
            if predicted.get(key) != measured[name].get(key):
                differences[name, key] = (predicted.get(key), measured[name].get(key))
    assert differences == {}


def test_predicts_a_run_in_another_process(tmp_path: Path, report_of: Report) -> None:
    script, trace = PROGRAMS / "transformer.py", tmp_path / "trace.json.gz"
    report_of("run", script, "--device", "host", "--policy", "keep", "-o", trace)
    run = report_of("run", script, "--device", "host", "--policy", "trl")
    predicted = report_of("simulate", trace, "--policy", "trl")["predicted"]
    assert run["inexact"] == []
    assert {key: run["measured"].get(key) for key in EXACT} == {key: predicted.get(key) for key in EXACT}
