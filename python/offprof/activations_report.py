"""The report of `offprof.OffloadActivations`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

# Figures of the report, by their keys.
_FIGURES = {
    "device_peak_bytes": "peak of device memory",
    "device_resident_bytes": "resident before the step",
    "host_peak_bytes": "peak of host memory",
    "d2h_bytes": "copied out",
    "h2d_bytes": "copied in",
    "step_time_ns": "step time",
    "exposed_ns": "stalls",
}
_NS_PER_MS = 1e6
_BYTES_PER_MIB = 2**20


def format_figure(key: str, value: float | None) -> str:
    """Returns the figure of that key with its unit; None: an empty text."""
    if value is None:
        return ""
    if key.endswith("_ns"):
        return f"{value / _NS_PER_MS:.3f} ms"
    return f"{value / _BYTES_PER_MIB:.2f} MiB"


def text_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns a table as text. The first column is aligned to the left."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.rjust(widths[i]) if i > 0 else cell.ljust(widths[i]) for i, cell in enumerate(line)).rstrip()
        for line in lines
    )


def html_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns a table as HTML; the texts are escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class OffloadingReport:
    """Figures of the last steps under a policy.

    Attributes:
        policy: describes the policy.
        measured: figures by the keys of `offprof run --format json`: the highest memory of the last 20 whole steps, and
            the times of the step with the median time; None: there was no whole step yet.
        predicted: the same, as the policy file predicts them; None: it does not, or they do not hold.
        ledger: tensors and bytes that autograd saved in the last step, by placement and reason.
        steps: whole steps so far.
        saved_by_other_hooks: tensors that saved-tensor hooks of the program took, in the whole process.
    """

    policy: str
    measured: dict[str, Any] | None
    predicted: dict[str, Any] | None
    ledger: list[dict[str, Any]]
    steps: int
    saved_by_other_hooks: int

    def _columns(self) -> dict[str, dict[str, Any]]:
        columns = {"measured": self.measured, "predicted": self.predicted}
        return {name: figures for name, figures in columns.items() if figures is not None}

    def _rows(self) -> Iterator[tuple[str, ...]]:
        columns = self._columns().values()
        for key, name in _FIGURES.items():
            if any(key in figures for figures in columns):
                yield (name, *(format_figure(key, figures.get(key)) for figures in columns))

    def _ledger_rows(self) -> Iterator[tuple[str, ...]]:
        for entry in self.ledger:
            place = f"{entry['placement']}, {entry['reason']}".replace("_", " ")
            yield place, str(entry["tensors"]), format_figure("bytes", entry["bytes"])

    def _notes(self) -> Iterator[str]:
        yield f"policy: {self.policy}"
        yield f"whole steps: {self.steps}"
        if self.saved_by_other_hooks:
            yield f"saved-tensor hooks of the program took {self.saved_by_other_hooks} tensors"

    def __str__(self) -> str:
        """Returns the report as text."""
        figures = text_table(("", *self._columns()), self._rows())
        ledger = text_table(("saved tensors", "tensors", "bytes"), self._ledger_rows())
        return "\n".join([*self._notes(), "", figures, "", ledger])

    def _repr_html_(self) -> str:
        """Returns the report for a notebook."""
        notes = "<br>".join(escape(note) for note in self._notes())
        figures = html_table(("", *self._columns()), self._rows())
        ledger = html_table(("saved tensors", "tensors", "bytes"), self._ledger_rows())
        return f"<p>{notes}</p>{figures}{ledger}"
