"""Runs each program of this folder plainly on the CPU: three steps, twice with the same seed.

Programs whose libraries are not installed are left out, with a warning.
"""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import programs
import pytest
from offprof_command import offline_environment

STEPS = 3
# Runs a script twice in one process, since the import of torch takes longer than the training.
TRAIN_TWICE = """
import runpy, sys
del sys.argv[0]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
for _ in range(2):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def installed_programs() -> list[programs.Program]:
    """Returns the programs that can run. Warns of the others."""
    left_out = [program.name for program in programs.PROGRAMS if program.missing()]
    if left_out:
        warnings.warn(f"not installed (scripts/setup.sh --programs): {', '.join(left_out)}", stacklevel=1)
    return [program for program in programs.PROGRAMS if program.name not in left_out]


@pytest.mark.parametrize("program", installed_programs(), ids=lambda program: program.name)
def test_a_program_trains_the_same_way_each_time(program: programs.Program, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRAIN_TWICE, str(program.path), *program.arguments, "--steps", str(STEPS)]
    ended = subprocess.run(
        command, cwd=tmp_path, env=offline_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    results = re.findall(r"^.*\d\.\d{6}$", ended.stdout, re.MULTILINE)
    assert len(results) % 2 == 0
    first, second = results[: len(results) // 2], results[len(results) // 2 :]
    assert first
    assert first == second
