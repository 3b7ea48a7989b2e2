"""Signals, as a terminal and other processes send them, and two processes that write one trace."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Run, build_folder

CTRL_C = b"\x03"
LOOP = """
import os, signal, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train_step():
    model(torch.randn(8, 64)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# Trains for three steps, and idles until a signal comes.
IDLES = """
def idle():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    print('waiting', flush=True)
    while True: os.read(reader, 1)
for _ in range(3): train_step()
"""
WAITS = IDLES + "idle()\n"


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, folder: Path, arguments: tuple[object, ...]) -> None:
        """Starts `offprof` with arguments in a folder, whose folder `temporary` is for temporary files."""
        (folder / "temporary").mkdir()
        program = str(build_folder() / "offprof")
        environment = {**os.environ, "VIRTUAL_ENV": sys.prefix, "TMPDIR": str(folder / "temporary")}
        self.output = ""
        self._status: int | None = None
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests may run where it is ignored
            os.chdir(folder)
            os.execve(program, [program, *map(str, arguments)], environment)

    def wait_for(self, text: str) -> None:
        """Waits until the program has printed the text."""
        while text not in self.output:
            assert self._read(), f"the program ended: {self.output}"

    def press(self, keys: bytes) -> None:
        """Types keys."""
        os.write(self._terminal, keys)

    def status(self) -> int:
        """Waits for the end of the program and returns its status."""
        while self._read():
            pass
        self._status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return self._status

    def close(self) -> None:
        """Kills the program if it has not ended."""
        if self._status is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self._terminal)

    def _read(self) -> bool:
        try:
            part = os.read(self._terminal, 4096)
        except OSError:  # all programs in the terminal have ended
            return False
        self.output += part.decode(errors="replace")
        return bool(part)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """A function that runs a script, whose text follows LOOP, in a terminal under `offprof` with arguments."""
    opened: list[Terminal] = []

    def run(text: str, *arguments: object) -> Terminal:
        (tmp_path / "train.py").write_text(LOOP + text)
        opened.append(Terminal(tmp_path, arguments))
        return opened[-1]

    yield run
    for each in opened:
        each.close()


RUN = ("run", "train.py", "--device", "host", "-o", "trace.json")
EXEC = ("exec", "--", sys.executable, "train.py")


def assert_nothing_remains(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["temporary", "train.py"]
    assert list((folder / "temporary").glob("offprof*")) == []


@pytest.mark.parametrize("command", [RUN, EXEC], ids=["run", "exec"])
def test_ctrl_c_ends_a_command_with_130(
    command: tuple[str, ...], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    program = terminal(WAITS, *command)
    program.wait_for("waiting")
    program.press(CTRL_C)
    assert program.status() == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in program.output
    assert program.output.endswith("\n")
    assert_nothing_remains(tmp_path)


@pytest.mark.parametrize("command", [RUN, EXEC], ids=["run", "exec"])
def test_sigterm_ends_a_command_with_143(
    command: tuple[str, ...], terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    program = terminal(WAITS, *command)
    program.wait_for("waiting")
    os.kill(program.process, signal.SIGTERM)
    assert program.status() == 128 + signal.SIGTERM
    assert program.output.endswith("\n")
    assert_nothing_remains(tmp_path)


def test_a_script_that_ends_after_ctrl_c_in_its_own_way_is_interrupted_too(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    handles = "try:\n    idle()\nexcept KeyboardInterrupt:\n    print('saved my work')\n"
    program = terminal(IDLES + handles, *RUN)
    program.wait_for("waiting")
    program.press(CTRL_C)
    assert program.status() == 128 + signal.SIGINT
    assert "saved my work" in program.output
    assert "no trace is written" in " ".join(program.output.split())
    assert "Traceback" not in program.output
    assert_nothing_remains(tmp_path)


def test_a_script_that_trains_on_after_ctrl_c_is_recorded(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    trains_on = "try:\n    idle()\nexcept KeyboardInterrupt:\n    pass\nwhile True: train_step()\n"
    program = terminal(IDLES + trains_on, *RUN)
    program.wait_for("waiting")
    program.press(CTRL_C)
    assert program.status() == 0, program.output
    assert (tmp_path / "trace.json").exists()


def test_ctrl_c_after_the_recording_leaves_the_trace(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    program = terminal(IDLES + "for _ in range(40): train_step()\nidle()\n", *RUN, "--continue")
    program.wait_for("waiting")
    program.press(CTRL_C)
    assert program.status() == 128 + signal.SIGINT
    assert (tmp_path / "trace.json").exists()


# --- Two processes that write one trace ---


@contextmanager
def named_pipes(folder: Path, *names: str) -> Iterator[None]:
    """Makes named pipes, by which a script and a test wait for each other."""
    for name in names:
        os.mkfifo(folder / name)
    yield
    for name in names:
        (folder / name).unlink()


def test_a_second_run_does_not_write_the_trace_of_the_first(offprof: Run, tmp_path: Path) -> None:
    waits = "train_step()\nopen('ready', 'w').close()\nopen('go').close()\nwhile True: train_step()\n"
    (tmp_path / "train.py").write_text(LOOP + waits)
    (tmp_path / "second.py").write_text(LOOP + "while True: train_step()\n")
    command = [str(build_folder() / "offprof"), *RUN]
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    with (
        named_pipes(tmp_path, "ready", "go"),
        subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as first,
    ):
        with open(tmp_path / "ready"):
            pass
        second = offprof("run", "second.py", "--device", "host", "-o", "./trace.json")
        with open(tmp_path / "go", "w"):
            pass
        first.communicate()
    assert (second.returncode, "another process is about to write" in second.stderr) == (2, True)
    assert first.returncode == 0
    view = offprof("view", "--format", "json", "trace.json")
    assert '"train.py"' in view.stdout


def test_a_forked_process_that_trains_too_does_not_write_the_trace(offprof: Run, tmp_path: Path) -> None:
    forks = "train_step()\nchild = os.fork()\nfor _ in range(30): train_step()\n"
    forks += "if child == 0: print('the child ended')\nelse: os.waitpid(child, 0)\n"
    (tmp_path / "train.py").write_text(LOOP + forks)
    end = offprof(*RUN, "--continue")
    assert end.returncode == 0, end.stderr
    assert "the child ended" in end.stdout
    assert end.stderr.count("offprof: recorded in") == 1


def test_a_fork_that_leaves_offprof_profile_is_refused(offprof: Run, tmp_path: Path) -> None:
    text = """
import offprof, os, sys
with offprof.profile(output="trace.json", steps=1) as p:
    import torch
    weight = torch.nn.Parameter(torch.randn(64, 64))
    child = None
    while not p.is_done and child != 0:
        (torch.randn(16, 64) @ weight).sigmoid().mean().backward()
        weight.grad = None
        p.step()
        if child is None: child = os.fork()
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("status of the child:", status, "trace:", p.result.path)
"""
    (tmp_path / "record.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(build_folder() / "python")}
    end = subprocess.run(
        [sys.executable, "record.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert end.returncode == 0, end.stderr
    assert "status of the child: 1" in end.stdout
    assert "only that one writes the recording" in end.stderr
    assert offprof("view", "trace.json").returncode == 0


def test_a_second_profile_with_the_same_file_is_refused(tmp_path: Path) -> None:
    text = """
import offprof, os
with offprof.profile(output="trace.json"):
    child = os.fork()
    if child == 0:
        os.execvp(PYTHON, [PYTHON, "-c", "import offprof\\nwith offprof.profile(output='trace.json'): pass"])
    os.waitpid(child, 0)
"""
    import_first = f"PYTHON = {sys.executable!r}\n"
    (tmp_path / "record.py").write_text(import_first + text)
    environment = {**os.environ, "PYTHONPATH": str(build_folder() / "python")}
    end = subprocess.run(
        [sys.executable, "record.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "another process is about to write 'trace.json'" in end.stderr.replace(str(tmp_path) + "/", "")
