"""Fixtures of the Python tests. CTest sets OFFPROF_BUILD to the build folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"

# A shell ignores the interrupt in commands that it starts in the background, and so would the programs of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def build_folder() -> Path:
    """Returns the build folder with the program and the extension."""
    default = Path(__file__).resolve().parents[2] / "build"
    return Path(os.environ.get("OFFPROF_BUILD", default))


def gpu_profile(name: str) -> dict[str, Any]:
    """Returns a built-in GPU profile, to be changed and used as --device virtual:PATH."""
    profiles = Path(__file__).resolve().parents[2] / "engine/devices/virtual_gpu/model/profiles"
    profile: dict[str, Any] = json.loads((profiles / f"{name}.json").read_text(encoding="utf-8"))
    return profile


@pytest.fixture
def untimed_functions(tmp_path: Path) -> str:
    """A virtual GPU on which Python functions take no time: other functions may do the same work."""
    profile = gpu_profile("h200")
    del profile["host"]["python_function_ns"]
    path = tmp_path / "untimed_functions.json"
    path.write_text(json.dumps(profile), encoding="utf-8")
    return f"virtual:{path}"


@pytest.fixture
def deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process and those that it starts import DeepSpeed. Without it, skips the test."""
    folder = Path(__file__).resolve().parents[2] / ".deps" / "deepspeed"
    if not folder.is_dir():
        pytest.skip("no DeepSpeed; scripts/setup.sh --programs installs it")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


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
        report: dict[str, Any] = json.loads(end.stdout)
        return report

    return run


@dataclass
class Executed:
    """Result of a command line `offprof exec`."""

    status: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def processes(self) -> list[dict[str, Any]]:
        """The processes that used the GPU."""
        processes: list[dict[str, Any]] = self.report["processes"]
        return processes

    @property
    def process(self) -> dict[str, Any]:
        """The only process that used the GPU."""
        assert len(self.processes) == 1, self.err
        return self.processes[0]

    def of_rank(self, rank: int) -> dict[str, Any]:
        """The process of that rank."""
        found = [process for process in self.processes if process.get("rank") == rank]
        assert len(found) == 1, self.err
        return found[0]

    def collectives(self, rank: int = 0) -> dict[str, dict[str, Any]]:
        """The collectives of a rank by name."""
        return {each["name"]: each for each in self.of_rank(rank)["collectives"]}


Exec = Callable[..., Executed]


def run_under_exec(
    folder: Path,
    options: Iterable[object],
    command: Iterable[object],
    script: str = "",
    variables: dict[str, str] | None = None,
    timeout_s: float | None = None,
) -> Executed:
    """Runs a command under `offprof exec` in the folder; with a script, that script with the command's words."""
    if script:
        path = folder / "script.py"
        path.write_text(textwrap.dedent(script))
        command = (sys.executable, path, *command)
    output = folder / "report.json"
    output.unlink(missing_ok=True)
    line = [build_folder() / "offprof", "exec", "--format", "json", "-o", output, *options, "--", *command]
    done = subprocess.run(
        [str(word) for word in line],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        timeout=timeout_s,
    )
    report = json.loads(output.read_text()) if output.exists() else {}
    return Executed(done.returncode, done.stdout, done.stderr, report)


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
