"""Compares policies on a training step: `offprof.compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .activations import OffloadActivations
from .activations_report import OffloadingReport, format_figure, html_table, text_table
from .errors import InputError

_COLUMNS = {
    "device_peak_bytes": "peak",
    "host_peak_bytes": "host",
    "d2h_bytes": "copied out",
    "step_time_ns": "step",
    "exposed_ns": "stalls",
}


@dataclass(frozen=True)
class Comparison:
    """Reports of the same step under several policies.

    Attributes:
        reports: by the names of the policies, in the order in which they were compared.
    """

    reports: dict[str, OffloadingReport]

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for name, report in self.reports.items():
            measured = report.measured or {}
            rows.append((name, *(format_figure(key, measured.get(key)) for key in _COLUMNS)))
        return rows

    def __str__(self) -> str:
        """Returns a table with a row for each policy."""
        return text_table(("policy", *_COLUMNS.values()), self._rows())

    def _repr_html_(self) -> str:
        """Returns the table for a notebook."""
        return html_table(("policy", *_COLUMNS.values()), self._rows())


def compare(
    step: Callable[[], Any],
    policies: Sequence[str | os.PathLike[str]],
    *,
    steps: int = 8,
    disk: str | os.PathLike[str] | None = None,
    device: str | None = None,
) -> Comparison:
    """Trains some steps under each policy, and compares their figures.

    The model is trained on: each call of `step` is another step of the same program.

    Args:
        step: makes one step: forward, backward, and usually an optimizer's step.
        policies: presets and policy files.
        steps: calls of `step` under each policy, at least 4: the first ones are only observed.
        disk: folder for policies that place tensors on a disk: see OffloadActivations.
        device: see OffloadActivations.

    Raises:
        InputError: a policy cannot be read or carried out, or there are too few steps.
        UnavailableError: this Python or machine lacks something.
    """
    if steps < 4:
        raise InputError(f"offprof.compare needs at least 4 steps under each policy, not {steps}", "Give more steps.")
    contexts = {os.fspath(policy): OffloadActivations(policy, disk=disk, device=device) for policy in policies}
    reports = {}
    for name, context in contexts.items():
        for _ in range(steps):
            with context:
                step()
            context.step()
        reports[name] = context.report()
    return Comparison(reports)
