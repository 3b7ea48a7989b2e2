"""Runs a training program unchanged and records it: the Python side of ``offprof run SCRIPT.py``.

``python launcher.py REQUEST.json``; offprof writes the request, and reads the files that it names.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from types import TracebackType
from typing import Any

OLDEST_PYTHON = (3, 9)
# Status of a program that could not be recorded. The outcome file says why.
NOT_RECORDED = 1


def _write_error(request: dict[str, Any], kind: str, message: str, hint: str) -> int:
    """Writes an outcome that says why nothing was recorded; see profiler/plugin/script_io.h."""
    outcome = {
        "schema": "offprof.script_outcome/1",
        "error": {"kind": kind, "message": message, "hint": hint},
    }
    with open(request["outcome_path"], "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    return NOT_RECORDED


def _program_name(request: dict[str, Any]) -> str:
    return str(request["run"]["program"])


def _own_frames_skipped(trace: TracebackType | None) -> TracebackType | None:
    """Returns the part of a traceback that a program would show if Python ran it directly."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _launcher_files():
        trace = trace.tb_next
    return trace


def _launcher_files() -> set[str]:
    return {__file__, runpy.__file__, "<frozen runpy>"}


def _run_program(request: dict[str, Any]) -> None:
    """Runs the program as Python would: its arguments, its folder on the path, its name ``__main__``."""
    program = _program_name(request)
    sys.argv = [program, *request["arguments"]]
    if request["is_module"]:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
        runpy.run_path(program, run_name="__main__")


class _Launch:
    """One recording of a program."""

    def __init__(self, request_text: str) -> None:
        from offprof import native, script_driver

        self.request: dict[str, Any] = json.loads(request_text)
        gpu = self.request.get("virtual_gpu")
        if gpu is not None:
            from offprof.virtual_gpu import open_virtual_gpu

            open_virtual_gpu(gpu["profile"], libraries=gpu["libraries"])
        extension = native.load_extension()
        self.recording = extension.Recording(request_text, self._report_progress)
        self.driver = script_driver.ScriptDriver(self.recording, extension.Phase, self.request["patience_seconds"])

    def run(self) -> int:
        """Runs the program until it is recorded or ends. Returns the exit status of the launcher."""
        from offprof.errors import InputError, OffprofError
        from offprof.script_driver import ProgramStopped

        self.driver.watch.install()
        try:
            _run_program(self.request)
        except ProgramStopped:
            pass
        except OffprofError as error:
            return self._refuse(isinstance(error, InputError), error.message, error.hint)
        except SystemExit as end:
            return self._ended(f"the program ended ({_describe_exit(end)})")
        except BaseException as error:  # the program's own failure, KeyboardInterrupt too
            return self._failed(error)
        if not self.driver.is_done:
            return self._ended("the program ended")
        self.recording.write()
        return 0

    def _ended(self, how: str) -> int:
        if self.driver.is_done:
            self.recording.write()
            return 0
        program = _program_name(self.request)
        if self.recording.steps == 0:
            return self._refuse(True, *self.driver.no_step_message(f"{how} before a step was seen", program))
        return self._refuse(
            True,
            f"{program}: {how} after {self.recording.steps} steps, before everything was recorded",
            "Let it train for more steps.",
        )

    def _failed(self, error: BaseException) -> int:
        traceback.print_exception(type(error), error, _own_frames_skipped(error.__traceback__))
        steps = self.recording.steps
        if self.recording.fail():
            self.recording.write()
            return 0
        recorded = "everything was recorded but not measured" if self.recording.is_recorded else "nothing was recorded"
        return self._refuse(
            True,
            f"{_program_name(self.request)} raised {type(error).__name__} in step {steps}; until then {recorded}",
            "Its traceback is above.",
        )

    def _refuse(self, is_input: bool, message: str, hint: str) -> int:
        self.recording.write_error(is_input, message, hint)
        return NOT_RECORDED

    @staticmethod
    def _report_progress(what: str) -> None:
        descriptor = int(os.environ.get("OFFPROF_PROGRESS_FD", "-1"))
        if descriptor >= 0:
            os.write(descriptor, f"{what}\n".encode())


def _describe_exit(end: SystemExit) -> str:
    return "with status 0" if end.code in (None, 0) else f"with status {end.code}"


def main() -> int:
    """Runs the request in the file that the first argument names. Returns the exit status."""
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    request = json.loads(text)
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return _write_error(
            request,
            "environment",
            f"{sys.executable} is Python {sys.version.split()[0]}; offprof needs {wanted} or later",
            "Choose another Python: --python PATH",
        )
    if sys.path[0] == os.path.dirname(os.path.realpath(__file__)):
        del sys.path[0]  # the modules beside this file are not for the program
    # The package's folder, for programs that import offprof; at the end, so that it hides nothing of theirs.
    package_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(package_parent)
    from offprof.errors import InputError, OffprofError

    try:
        launch = _Launch(text)
    except OffprofError as error:
        kind = "input" if isinstance(error, InputError) else "environment"
        return _write_error(request, kind, error.message, error.hint)
    return launch.run()


if __name__ == "__main__":
    sys.exit(main())
