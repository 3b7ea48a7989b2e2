"""Runs each program of this folder plainly on the CPU: three steps, twice with the same seed.

Each runs in a fork of this process, since the import of torch takes longer than the training. Programs whose libraries
are not installed are left out, with a warning.
"""

import os
import re
import runpy
import sys
import traceback
import warnings
from pathlib import Path

import programs
import pytest
import torch
from offprof_command import offline_environment

STEPS = 3


def installed_programs() -> list[programs.Program]:
    """Returns the programs that can run. Warns of the others."""
    left_out = [program.name for program in programs.PROGRAMS if program.missing()]
    if left_out:
        warnings.warn(f"not installed (scripts/setup.sh --programs): {', '.join(left_out)}", stacklevel=1)
    return [program for program in programs.PROGRAMS if program.name not in left_out]


def train_twice(program: programs.Program, output: Path) -> None:
    """Runs the program twice in this process. Standard output and standard error go to `output`."""
    with output.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = [str(program.path), *program.arguments, "--steps", str(STEPS)]
    sys.path.insert(0, str(program.path.parent))
    for _ in range(2):
        runpy.run_path(str(program.path), run_name="__main__")
    sys.stdout.flush()


def train_twice_in_fork(program: programs.Program, folder: Path) -> tuple[int, str]:
    """Runs `train_twice` in a child process with the working folder `folder`.

    Returns:
        The exit status, negative if a signal ended the child, and its output.
    """
    output = folder / "output.txt"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ.update(offline_environment(folder))
            os.chdir(folder)
            torch.set_num_threads(1)
            train_twice(program, output)
            status = 0
        except BaseException:  # including SystemExit: the child must not return into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    _, waited = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(waited), output.read_text(encoding="utf-8")


@pytest.mark.parametrize("program", installed_programs(), ids=lambda program: program.name)
def test_a_program_trains_the_same_way_each_time(program: programs.Program, tmp_path: Path) -> None:
    status, output = train_twice_in_fork(program, tmp_path)
    assert status == 0, output
    results = re.findall(r"^.*\d\.\d{6}$", output, re.MULTILINE)
    assert len(results) % 2 == 0
    first, second = results[: len(results) // 2], results[len(results) // 2 :]
    assert first
    assert first == second
