"""Runs each program of this folder plainly on the CPU: three steps, twice with the same seed."""

import re
import subprocess
import sys
from pathlib import Path

import programs
import pytest
from offprof_command import offline_environment

STEPS = 3


def train(program: programs.Program, folder: Path) -> str:
    """Trains a few steps. Returns the last line of the output."""
    command = [sys.executable, str(program.path), *program.arguments, "--steps", str(STEPS)]
    ended = subprocess.run(command, cwd=folder, env=offline_environment(folder), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.name)
def test_a_program_trains_the_same_way_each_time(program: programs.Program, tmp_path: Path) -> None:
    missing = program.missing()
    if missing:
        pytest.skip(f"no {missing[0]}: scripts/setup.sh --programs installs it")
    first = train(program, tmp_path)
    assert re.search(r"\d\.\d{6}", first), first
    assert train(program, tmp_path) == first
