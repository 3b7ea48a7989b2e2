"""Child processes with a time limit. Each runs in a process group of its own, which is killed as a whole."""

import contextlib
import os
import signal
import subprocess
import time

SECONDS_TO_DIE = 10  # after SIGKILL; a process inside the GPU's driver may take longer, and is not waited for


class TimedOut(Exception):
    """A child process was killed at its time limit."""


class Children:
    """Runs child processes, one at a time, each with a time limit."""

    def __init__(self):
        self._running = None

    def run(self, command, seconds, environment=None):
        """Returns (exit status, stdout, stderr). Raises TimedOut after `seconds`, OSError if it cannot start."""
        if seconds <= 0:
            raise TimedOut(f"no time left to run {os.path.basename(command[0])}")
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", env={**os.environ, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        self._running = child
        began = time.monotonic()
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = remaining_output(child)
            what = " ".join([os.path.basename(command[0]), *command[1:]])
            last = (err or out).strip()[-1000:]
            raise TimedOut(f"killed after {time.monotonic() - began:.0f} s: {what}\n{last}") from None
        finally:
            self._running = None
        return child.returncode, out, err

    def kill(self):
        """Kills the running child, if there is one, and all processes that it started. May be called at any time."""
        child = self._running
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def remaining_output(child):
    """Returns the output that a killed child had printed."""
    try:
        return child.communicate(timeout=SECONDS_TO_DIE)
    except subprocess.TimeoutExpired:
        return "", ""
