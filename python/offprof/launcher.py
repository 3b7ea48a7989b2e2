"""Runs a training program unchanged and records it: the Python side of ``offprof run SCRIPT.py``.

``python launcher.py REQUEST.json``; offprof writes the request, and reads the files that it names
(profiler/plugin/script_io.h).
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offprof.ranks import RankPlace
    from offprof.step_collectives import StepCollectives

OLDEST_PYTHON = (3, 9)
# Status of a program that could not be recorded. The outcome file says why.
NOT_RECORDED = 1
# Status of a program that Ctrl-C ended, as a shell has it.
INTERRUPTED = 128 + signal.SIGINT


def _write_error(request: dict[str, Any], kind: str, message: str, hint: str) -> int:
    """Writes an outcome that says why nothing was recorded."""
    outcome = {
        "schema": "offprof.script_outcome/1",
        "error": {"kind": kind, "message": message, "hint": hint},
    }
    with open(request["outcome_path"], "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    return NOT_RECORDED


def _own_frames_skipped(trace: TracebackType | None) -> TracebackType | None:
    """Returns the part of a traceback that a program would show if Python ran it directly."""
    folder = os.path.dirname(os.path.abspath(__file__))
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if os.path.dirname(file) != folder and file not in (runpy.__file__, "<frozen runpy>"):
            break
        trace = trace.tb_next
    return trace


def _print_failure(error: BaseException) -> None:
    """Prints the traceback of a program that failed, as Python would."""
    traceback.print_exception(type(error), error, _own_frames_skipped(error.__traceback__))


def _end_between_calls() -> None:
    """Lets SIGTERM and SIGHUP end the process as they do by default, but never within a call of the extension, which
    may be writing a file. A program that handles them itself replaces this."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end_by_signal)


def _end_by_signal(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _refuse_early_torch() -> None:
    """Raises UnavailableError if torch is imported already: then it was imported when Python started."""
    if "torch" not in sys.modules:
        return
    from offprof.errors import UnavailableError

    raise UnavailableError(
        "torch was imported when Python started, before the virtual GPU could be opened",
        "Look for the import in the sitecustomize.py, the usercustomize.py and the .pth files of this Python: "
        f"{sys.executable} -v -c pass 2>&1 | grep 'import .torch'",
    )


class _Launch:
    """One recording of a program."""

    def __init__(self, request_text: str) -> None:
        from offprof import native

        self._process = os.getpid()
        self._shown_stage = ""
        self.request: dict[str, Any] = json.loads(request_text)
        self.program: str = self.request["run"]["program"]
        gpu = self.request.get("virtual_gpu")
        self._collectives: StepCollectives | None = None
        if gpu is not None:
            from offprof.virtual_gpu import open_virtual_gpu

            _refuse_early_torch()
            place = self._rank_place()
            opened = open_virtual_gpu(
                gpu["profile"],
                devices=place.ranks_per_node if place else 1,
                cluster=gpu["cluster"],
                balanced_experts=gpu["balanced_experts"],
                libraries=gpu["libraries"],
            )
        extension = native.load_extension()
        if gpu is not None and place is not None:
            from offprof.ranks import connect_ranks
            from offprof.step_collectives import StepCollectives

            said = Path(self.request["rank"]["said"])
            connect_ranks(opened, place, said, is_alone=True, ends_by_itself=False)
            self._collectives = StepCollectives(opened)
            importlib.import_module("torch").cuda.set_device(place.local_rank)  # the recording's device
        from offprof.checkpointing import Checkpointing  # these import torch
        from offprof.code_locator import CodeLocator
        from offprof.exported_code import ExportedCode
        from offprof.script_driver import ScriptDriver

        locator = CodeLocator()
        self.recording = extension.Recording(request_text, self._report_progress, locator.locate)
        patience = self.request["patience_seconds"]
        self.checkpointing = Checkpointing(
            self.request["run"]["settings"].get("checkpoint", []), self.recording.add_note
        )
        self.exported = ExportedCode(self.request["applied_code"])
        self.driver = ScriptDriver(
            *(self.recording, extension.Phase, locator, self._finish, patience),
            on_backward=self._backward_begins,
            on_step_end=self._step_ends,
        )

    def _backward_begins(self) -> None:
        self.checkpointing.close()
        self.exported.leave()

    def _step_ends(self) -> None:
        if self._collectives is not None:
            self._collectives.end_step()

    def _rank_place(self) -> RankPlace | None:
        """Returns the place of a program that is one rank of many; None: it is no rank."""
        from offprof.ranks import place_from_environment

        return place_from_environment() if "rank" in self.request else None

    def run(self) -> int:
        """Runs the program until it is recorded or ends. Returns the exit status of the launcher."""
        from offprof.errors import InputError, OffprofError
        from offprof.script_driver import ProgramStopped

        try:
            self._run_program()
        except ProgramStopped:
            return 0
        except OffprofError as error:
            if self._is_fork():
                raise
            return self._refuse(isinstance(error, InputError), f"{self.program}: {error.message}", error.hint)
        except SystemExit as end:
            if self._is_fork():
                raise
            return self._ended(f"ended with status {end.code or 0}")
        except BaseException as error:  # the program's own failure
            _print_failure(error)
            if isinstance(error, KeyboardInterrupt):
                return INTERRUPTED
            return 1 if self._is_fork() else self._failed(error)
        return 0 if self._is_fork() else self._ended("ended")

    def _is_fork(self) -> bool:
        """Returns True in a process that the program has forked. Only the first process reports an outcome."""
        return os.getpid() != self._process

    def _run_program(self) -> None:
        from offprof import program_runner

        module, _, name = self.request["step_function"].partition(":")
        in_main = name if module == "__main__" else ""
        if name and not in_main:
            program_runner.watch_steps_in_module(module, name, self.driver.tick_by_hand)
        self.driver.watch.install()
        self.checkpointing.install()
        self.exported.install()
        request = self.request
        program_runner.run_program(
            self.program, request["arguments"], request["is_module"], in_main, self.driver.tick_by_hand
        )

    def _finish(self) -> Any:
        """Writes the results. Returns what the program does now."""
        from offprof.script_driver import Afterwards

        self.recording.write()
        if self._collectives is not None:
            self._collectives.write(self.request["rank"]["collectives_path"])
        steps = self.recording.steps
        sys.stdout.flush()
        if self.request["continues"]:
            print(f"offprof: recorded in {_steps(steps)}; the program trains on under the policy", file=sys.stderr)
            return Afterwards.TRAIN_ON
        print(f"offprof: recorded in {_steps(steps)}; the program is stopped", file=sys.stderr)
        return Afterwards.STOP

    def _ended(self, how: str) -> int:
        """Reports the program's own end."""
        if self.driver.is_done:
            self.driver.close()
            return 0
        steps = self.recording.steps
        if steps == 0:
            message, hint = self.driver.no_step_message(f"{self.program} {how} before a step was seen")
            return self._refuse(True, message, hint + _hint_of_reads(self.recording.take_notes()))
        return self._refuse(
            True,
            f"{self.program} {how} after {_steps(steps)}, before everything was recorded",
            f"Let it train for {_steps(self.recording.steps_left)} more." + self._shorter_way(),
        )

    def _shorter_way(self) -> str:
        """Returns a hint on steps that the recording could do without; empty if there are none."""
        run = self.request["run"]
        if not run["device"].startswith("virtual") or run["transforms"] != ["recompute"]:
            return ""
        return " Without finding out what can be recomputed it takes two fewer: --transforms none."

    def _failed(self, error: BaseException) -> int:
        """Reports the program's failure."""
        if self.driver.is_done:
            return 0
        steps = self.recording.steps
        if self.recording.fail():
            self.recording.write()
            return 0
        if steps == 0:
            when = "before its first step: nothing was recorded"
        elif self.recording.is_recorded:
            when = f"in step {steps}: its step was recorded until then, but not measured"
        else:
            when = f"in step {steps}: the {steps - 1} steps before it are too few for a recording"
        hint = failure_hint(self.request["run"]["device"], error, self.recording.take_notes())
        return self._refuse(True, f"{self.program} raised {type(error).__name__} {when}", hint)

    def _refuse(self, is_input: bool, message: str, hint: str) -> int:
        self.recording.write_error(is_input, message, hint)
        return NOT_RECORDED

    def _report_progress(self, what: str) -> None:
        """Prints a line for each stage, or for each step; see ShownProgress in profiler/plugin/script_io.h."""
        stage = what.partition(":")[0]
        shown = self.request["progress"]
        if shown == "steps" or (shown == "stages" and stage != self._shown_stage):
            print(f"offprof: {what}", file=sys.stderr)
        self._shown_stage = stage


# Recording takes steps with nothing offloaded, which need not fit on a real GPU.
_NOTHING_FITS = (
    "A recording begins with steps in which nothing is offloaded, and these do not fit on this GPU. Find a policy on a "
    "virtual one, where they fit: offprof advise PROGRAM --device virtual:PROFILE -o policy.json; then train within "
    'offprof.OffloadActivations("policy.json"), which offloads from the first step on'
)


# In PyTorch's errors where a program uses CUDA.
_SIGNS_OF_NO_GPU = ("NVIDIA driver", "No CUDA GPUs", "Torch not compiled with CUDA")
_OTHER_STREAM = "computes on a CUDA stream of its own"  # engine/devices/cuda/cuda_device.cpp
_FAILURES_OF_CHILDREN = ("ProcessRaisedException", "ProcessExitedException")  # torch.multiprocessing
_VARIABLES_OF_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

# Start of the note on operators that read values which a virtual GPU does not know.
_VALUE_READS = "values are read back from the device"


def failure_hint(device: str, error: BaseException, notes: list[str]) -> str:
    """Returns what to do about an error of the program. `notes` are those of the device until then."""
    if device.startswith("cuda") and type(error).__name__ == "OutOfMemoryError":
        return _NOTHING_FITS
    if device == "host" and any(sign in str(error) for sign in _SIGNS_OF_NO_GPU):
        return (
            "The program asks for a GPU, and none works here. --device virtual:h100-80gb gives it a virtual one, of "
            "that or another name. Nothing is written."
        )
    if isinstance(error, KeyError) and error.args and error.args[0] in _VARIABLES_OF_RANKS:
        return (
            f"It reads {error.args[0]}, which a launcher of many ranks sets. --world-size N records one rank of N alone, on "
            "a virtual GPU. Nothing is written."
        )
    if type(error).__name__ in _FAILURES_OF_CHILDREN:
        return (
            "offprof run records the process of the program, and not those that it starts, as with "
            "torch.multiprocessing.spawn: offprof exec --devices N runs them all, and gives their peaks. To record one "
            "rank, let the program take RANK and WORLD_SIZE from the environment: --world-size N. Nothing is written."
        )
    if _OTHER_STREAM in str(error):
        return (
            "Run the model on the default stream: without torch.cuda.stream or StreamContext. offprof exec runs the program "
            "as it is, and gives its peaks. Nothing is written."
        )
    return "Its traceback is above. Nothing is written." + _hint_of_ranks() + _hint_of_reads(notes)


def _hint_of_ranks() -> str:
    """Returns a sentence on the number of ranks; empty if the program is no rank of several."""
    from offprof.ranks import place_from_environment

    place = place_from_environment()
    if place is None or place.world_size == 1:
        return ""
    return f" If the model cannot be split among {place.world_size} ranks, give another --world-size."


def _hint_of_reads(notes: list[str]) -> str:
    """Returns a sentence on values that the program read and a virtual GPU does not know; empty if there are none."""
    reads = [note.partition("(")[2].partition(")")[0] for note in notes if note.startswith(_VALUE_READS)]
    if not reads:
        return ""
    rank = os.environ.get("RANK", "0")
    if rank != "0":
        return (
            f" It read values that it may not have ({', '.join(reads)}): rank {rank} alone takes what another rank broadcasts "
            f"to be what it has itself, unless that one runs in the same command: --rank 0,{rank}"
        )
    return (
        f" It read values that a virtual GPU does not know, as zeros ({', '.join(reads)}): that may be why, as where it "
        "leaves out steps whose gradients are not finite. If a router chooses experts by them, --assume balanced-experts "
        "gives its choice"
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


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
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from offprof.errors import InputError, OffprofError

    _end_between_calls()
    try:
        launch = _Launch(text)
    except OffprofError as error:
        kind = "input" if isinstance(error, InputError) else "environment"
        return _write_error(request, kind, error.message, error.hint)
    return launch.run()


if __name__ == "__main__":
    sys.exit(main())
