"""Finds the steps of a program for its `OffloadActivations` contexts."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

from .program_watch import ProgramWatch
from .step_detector import StepDetector, Tick

# Steps in which modules are watched: the first may be a part of a step.
_WATCHED_STEPS = 2
# Optimizer steps after which the search for a period begins again.
_LONGEST_SEARCH = 64


class StepContext(Protocol):
    """A context whose steps end where those of the program end."""

    def on_backward_end(self) -> None:
        """The outermost backward pass has ended."""

    def on_inputs(self, tensors: list[Any]) -> None:
        """A root module is called with tensors that no operator with a history made."""

    def on_outputs(self, tensors: list[Any]) -> None:
        """The call of a root module has returned tensors."""

    def on_step_end(self) -> None:
        """A step of the program has ended."""

    def on_step_begin(self) -> None:
        """The next step begins. All contexts have ended theirs."""

    def on_fork(self) -> None:
        """The process is a forked child, in which the context must not be used."""


class ProgramSteps:
    """The steps of this process, between which the contexts change from one step to the next.

    A step of the program ends at the end of an optimizer step, or with the last optimizer of an order that repeats.
    """

    def __init__(self) -> None:
        """Watches nothing yet."""
        self.watch = ProgramWatch(self)
        self._contexts: weakref.WeakSet[Any] = weakref.WeakSet()
        self._detector = StepDetector()
        self._order: list[int] = []  # of the optimizers in a step; empty: not known
        self._position = 0
        self._watched_steps = 0  # since the last context was added
        os.register_at_fork(after_in_child=self._leave_child)

    @property
    def has_order(self) -> bool:
        """Whether the program has optimizers whose steps follow an order that repeats."""
        return bool(self._order) and all(self.watch.has_optimizer(number) for number in self._order)

    @property
    def is_recording(self) -> bool:
        """Whether offprof records the program now, by a watch of its own."""
        return not self.watch.is_alone

    def add(self, context: StepContext) -> None:
        """Reports the program's steps to the context while it exists."""
        self._contexts.add(context)
        self._watched_steps = 0
        if not self.watch.is_installed:
            self.watch.install()
        else:
            self.watch.watch_calls()

    def count_step(self) -> None:
        """Reports that a context has ended a step. Once the modules were seen, only root modules are watched."""
        self._watched_steps += 1
        if self._watched_steps == _WATCHED_STEPS:
            self.watch.watch_roots()

    def on_backward_begin(self) -> None:
        """See ProgramListener."""

    def on_backward_end(self) -> None:
        """See ProgramListener."""
        for context in list(self._contexts):
            context.on_backward_end()

    def on_inputs(self, tensors: list[Any]) -> None:
        """See ProgramListener."""
        for context in list(self._contexts):
            context.on_inputs(tensors)

    def on_outputs(self, tensors: list[Any]) -> None:
        """See ProgramListener."""
        for context in list(self._contexts):
            context.on_outputs(tensors)

    def on_optimizer_begin(self) -> None:
        """See ProgramListener."""

    def on_optimizer_end(self, optimizer: int) -> None:
        """See ProgramListener; ends a step with the last optimizer of the order."""
        if self._order and self._order[self._position] == optimizer:
            self._position = (self._position + 1) % len(self._order)
            if self._position == 0:
                self._change_steps()
            return
        if self._order:
            self._order = []
            self._detector = StepDetector()
        self._search(optimizer)

    def _search(self, optimizer: int) -> None:
        detector = self._detector
        if detector.feed(optimizer) is Tick.STEP_END and detector.period is not None:
            self._order = detector.seen[-detector.period :]
            self._position = 0
            self._change_steps()
        elif len(detector.seen) >= _LONGEST_SEARCH:
            self._detector = StepDetector()

    def _change_steps(self) -> None:
        """Ends the steps of all contexts before the next ones begin, since these reset the device's counters."""
        contexts = list(self._contexts)
        for context in contexts:
            context.on_step_end()
        for context in contexts:
            context.on_step_begin()

    def _leave_child(self) -> None:
        if self.watch.is_installed:
            self.watch.remove()
        for context in list(self._contexts):
            context.on_fork()


class _Process:
    """State of this process."""

    steps: ProgramSteps | None = None


def program_steps() -> ProgramSteps:
    """Returns the steps of this process."""
    if _Process.steps is None:
        _Process.steps = ProgramSteps()
    return _Process.steps
