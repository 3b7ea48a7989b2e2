"""Finds the steps of a program in the sequence of its optimizer steps."""

from __future__ import annotations

from enum import Enum


class Tick(Enum):
    """Meaning of an optimizer step for the recording."""

    NONE = 0  # within a step, or not known yet
    STEP_END = 1  # a step of the program ends here
    RESTART = 2  # the steps that were found so far were not the program's


class StepDetector:
    """Detects the period of the optimizers: a step of the program ends with the last optimizer of a period.

    With one optimizer, each of its steps ends a step of the program. A program with several, such as a GAN,
    steps them in an order that repeats. So the first optimizer seems to be the only one; once another has made a
    step, the order is known when it was seen twice.
    """

    def __init__(self) -> None:
        """Creates a detector that has seen nothing."""
        self._seen: list[int] = []
        self._period: int | None = None

    @property
    def period(self) -> int | None:
        """Number of optimizer steps in a step of the program; None: not known yet."""
        return self._period

    @property
    def seen(self) -> list[int]:
        """Optimizers, by number, in the order of their steps since the period is searched for."""
        return self._seen

    def feed(self, optimizer: int) -> Tick:
        """Reports that ``optimizer``, a number, has made a step."""
        self._seen.append(optimizer)
        if self._period is not None:
            if optimizer == self._seen[-1 - self._period]:
                return Tick.STEP_END if len(self._seen) % self._period == 0 else Tick.NONE
            self._period = None
            return Tick.RESTART
        self._period = self._find_period()
        return Tick.NONE if self._period is None else Tick.STEP_END

    def _find_period(self) -> int | None:
        """Returns the shortest period that all steps follow and that was seen twice; 1 for the first step."""
        count = len(self._seen)
        if count == 1:
            return 1
        for period in range(1, count // 2 + 1):
            if count % period == 0 and self._seen[period:] == self._seen[:-period]:
                return period
        return None
