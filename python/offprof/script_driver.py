"""Drives the recording of a program by the program's own steps."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch

from .code_locator import CodeLocator
from .errors import InputError
from .native import PROCESSORS
from .program_watch import ProgramWatch
from .step_detector import StepDetector, Tick
from .virtual_gpu import opened_virtual_gpu

# New containers after which Python collects garbage within a recorded step: more than a step of a program makes, but not
# more than fit into memory.
_CONTAINERS_BEFORE_COLLECTION = 1_000_000
# Least share of the peak that is reported as held by reference cycles.
_REPORTED_SHARE = 0.001


class ProgramStopped(BaseException):
    """Stops a training program once everything is recorded.

    Not an ``Exception``, so that a program's own error handling does not catch it by accident.
    """


class Afterwards(Enum):
    """What a program does once everything is recorded."""

    STOP = 0  # it is stopped
    TRAIN_ON = 1  # it trains on under the policy
    LEAVE = 2  # it trains on as it would without offprof


class ScriptDriver:
    """Ends and begins the recorded steps where the program's optimizers step.

    A step of the program runs from the end of an optimizer step to the end of the next one, so the data of a
    step are loaded in it, and gradients are freed in it, as the program does.
    """

    def __init__(
        self,
        recording: Any,
        phases: Any,
        locator: CodeLocator,
        on_recorded: Callable[[], Afterwards],
        patience_seconds: float = float("inf"),
        on_backward: Callable[[], None] = lambda: None,
        on_step_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Creates a driver whose watch is not installed yet.

        Args:
            recording: the extension's Recording.
            phases: the extension's Phase.
            locator: learns the paths of the program's modules.
            on_recorded: called once everything is recorded; says what the program does then.
            patience_seconds: longest time until the first step.
            on_backward: called when a backward pass begins.
            on_step_end: called when a step has ended, until everything is recorded.
        """
        self.watch = ProgramWatch(self)
        self.detector = StepDetector()
        self.is_done = False
        self.backward_passes = 0
        self._recording = recording
        self._phases = phases
        self._locator = locator
        self._on_recorded = on_recorded
        self._afterwards = Afterwards.STOP
        self._patience_seconds = patience_seconds
        self._on_backward = on_backward
        self._on_step_end = on_step_end
        self._began = time.monotonic()
        self._thresholds: tuple[int, int, int] | None = (
            None  # of the program's garbage collection, until it is released
        )
        self._most_garbage_bytes = 0
        self._takes_optimizers = True
        self.is_fork = False  # in a forked child process of the one that records
        os.register_at_fork(after_in_child=self._leave_child)

    def tick(self) -> None:
        """Ends the current step and begins the next.

        Raises ProgramStopped once everything is recorded, if the program does not train on. Raises OffprofError
        if the steps cannot be recorded.
        """
        if self.is_fork:
            return None
        if self.is_done:
            return self._tick_afterwards()
        if opened_virtual_gpu() is not None:
            self._collect_garbage()  # a part of the step, which frees what it has allocated, and takes no virtual time
        self._recording.end_step()
        self._on_step_end()
        self.watch.watch_roots()
        if opened_virtual_gpu() is None:
            self._collect_garbage()
        self._locator.learn(self.watch.roots())
        if not self._begin_step():
            self._finish()
        return None

    def _begin_step(self) -> bool:
        watch = self.watch
        begins: bool = self._recording.begin_step(
            watch.parameters(), watch.buffers(), watch.optimizer_states(), watch.gradients()
        )
        return begins

    def tick_by_hand(self) -> None:
        """Ends a step where the program says so; see tick. Optimizers do not end steps any more."""
        if self._takes_optimizers and not self.is_fork:
            self._takes_optimizers = False
            self._recording.restart()
        self.tick()

    def on_backward_begin(self) -> None:
        """See ProgramListener; also raises InputError if the program's patience has ended."""
        self.backward_passes += 1
        self._on_backward()
        self._check_patience()
        self._recording.begin_phase(self._phases.BACKWARD)

    def on_backward_end(self) -> None:
        """See ProgramListener."""
        self._recording.end_backward()

    def on_inputs(self, tensors: list[Any]) -> None:
        """See ProgramListener."""
        self._recording.begin_call(tensors)

    def on_outputs(self, tensors: list[Any]) -> None:
        """See ProgramListener."""
        self._recording.end_call(tensors)

    def on_optimizer_begin(self) -> None:
        """See ProgramListener."""
        self._recording.begin_phase(self._phases.OPTIMIZER)

    def on_optimizer_end(self, optimizer: int) -> None:
        """See ProgramListener; ends a step if the optimizer is the last of a step."""
        if not self._takes_optimizers:
            return
        tick = self.detector.feed(optimizer)
        if tick is Tick.RESTART and not self.is_done:
            self._recording.restart()
            self.watch.watch_calls()  # the steps of the program have other roots than it seemed
        elif tick is Tick.STEP_END:
            self.tick()

    def close(self) -> None:
        """Removes all hooks from the program, and ends the current step."""
        if self.is_fork:
            return
        self._recording.end_step()
        self.watch.remove()
        self.release_garbage()

    def _leave_child(self) -> None:
        """Leaves a forked child process alone, and gives it the processors that the recording keeps apart."""
        self.is_fork = True
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)  # what is frozen stays so: to look at it would copy its memory
        if self.watch.is_installed:
            self.watch.remove()
            self._recording.forget_in_child()
            os.sched_setaffinity(0, PROCESSORS)

    def _tick_afterwards(self) -> None:
        if self._afterwards is Afterwards.STOP:
            raise ProgramStopped
        if self._afterwards is Afterwards.TRAIN_ON:
            self._recording.begin_unrecorded_step(self.watch.parameters(), self.watch.buffers())

    def _finish(self) -> None:
        self.is_done = True
        self.release_garbage()
        self._note_garbage()
        self._afterwards = self._on_recorded()
        if self._afterwards is not Afterwards.TRAIN_ON:
            self.watch.remove()
        self._tick_afterwards()

    def _collect_garbage(self) -> None:
        """Frees tensors that only reference cycles hold: otherwise each step would begin with others.

        Within a step Python collects no garbage, for which it would choose another point in each step. Objects that are
        older than the first recorded step are not looked at again, so that this takes no time.
        """
        before = _allocated_bytes()
        gc.collect()
        if self._thresholds is None:
            gc.freeze()
            self._thresholds = gc.get_threshold()
            gc.set_threshold(_CONTAINERS_BEFORE_COLLECTION, *self._thresholds[1:])
        else:
            self._most_garbage_bytes = max(self._most_garbage_bytes, before - _allocated_bytes())

    def release_garbage(self) -> None:
        """Lets Python collect garbage as the program has it, once nothing is recorded any more."""
        if self._thresholds is not None:
            gc.unfreeze()
            gc.set_threshold(*self._thresholds)
            self._thresholds = None

    def _note_garbage(self) -> None:
        if self._most_garbage_bytes <= _REPORTED_SHARE * torch.cuda.max_memory_allocated():
            return
        self._recording.add_note(
            f"reference cycles hold {self._most_garbage_bytes / 2**20:.1f} MiB of device memory until Python collects them: "
            "the figures are those of a program that calls gc.collect() at the end of each step"
        )

    def _check_patience(self) -> None:
        if self._recording.steps > 0 or time.monotonic() - self._began < self._patience_seconds:
            return
        raise InputError(*self.no_step_message(f"no step was found in {self._patience_seconds:g} seconds"))

    def no_step_message(self, what: str) -> tuple[str, str]:
        """Returns the message and the hint for a program without steps. ``what`` says what is missing."""
        if self.backward_passes == 0:
            return (
                f"{what}: it ran no backward pass, so autograd saved nothing that could be offloaded",
                "Record a program that trains: one that calls loss.backward().",
            )
        optimizer_steps = len(self.detector.seen)
        if optimizer_steps == 0:
            return (
                f"{what}: it ran {self.backward_passes} backward passes, but no optimizer of torch.optim",
                "Name the function that makes one step: --step-function MODULE:NAME; or call p.step() of "
                "offprof.profile after each step.",
            )
        return (
            f"{what}: it ran {self.backward_passes} backward passes and {optimizer_steps} optimizer steps",
            "Let it train for more steps.",
        )


def _allocated_bytes() -> int:
    """Returns what PyTorch has allocated on the device; 0 if the program uses none."""
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0
