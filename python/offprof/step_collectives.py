"""Collectives of one step of a rank, for the report of ``offprof run --world-size``."""

from __future__ import annotations

import dataclasses
import json

from .virtual_gpu import Collectives, VirtualGpu


class StepCollectives:
    """Keeps what the last step has called, from the counts of the virtual GPU at the ends of steps."""

    def __init__(self, gpu: VirtualGpu) -> None:
        """Counts from now on."""
        self._gpu = gpu
        self._before = self._last = gpu.collectives()

    def end_step(self) -> None:
        """Ends a step. The next one does not begin with tensors of all-reduces that have ended."""
        self._gpu.let_watchdogs_look()
        self._before, self._last = self._last, self._gpu.collectives()

    def write(self, path: str) -> None:
        """Writes the collectives of the last step as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(_difference(self._last, self._before)), file)


def _difference(after: Collectives, before: Collectives) -> Collectives:
    """Returns the collectives between two counts. Communicators are those that existed at one time, until now."""
    earlier = {count.name: count for count in before.collectives}
    counts = []
    for count in after.collectives:
        base = earlier.get(count.name)
        rest = count if base is None else count - base
        if rest.calls > 0:
            counts.append(rest)
    exposed_ns = after.exposed_collectives_ns - before.exposed_collectives_ns
    return Collectives(after.communicators, exposed_ns, after.mismatch, tuple(counts))
