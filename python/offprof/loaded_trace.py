"""Traces in a notebook: `offprof.load`."""

from __future__ import annotations

import html
import os
import shutil
import subprocess
from pathlib import Path

from .errors import InputError, OffprofError, UnavailableError

_USAGE_STATUS = 2
_FRAME_HEIGHT_PX = 900


def find_program() -> str:
    """Returns the path of the program `offprof`: of this package's build or installation, or else the first in PATH.

    Raises UnavailableError if there is none.
    """
    package = Path(__file__).absolute().parent
    # build/python/offprof, and PREFIX/lib/offprof/python/offprof
    beside = [package.parents[1] / "offprof", *(folder / "bin" / "offprof" for folder in package.parents[3:4])]
    for program in beside:
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    found = shutil.which("offprof")
    if found is None:
        raise UnavailableError(
            f"the program offprof is neither in {beside[0].parent} nor in PATH",
            "Add the folder of the program to PATH.",
        )
    return found


class LoadedTrace:
    """Traces of `offprof run` or `offprof simulate`. A notebook shows their report.

    Attributes:
        paths: of the trace files, in the order of the comparison.
    """

    def __init__(self, paths: tuple[Path, ...]) -> None:
        """Keeps the paths; the files are read when a report is made."""
        self.paths = paths
        self._report: str | None = None

    def __repr__(self) -> str:
        """Returns the call that makes this object."""
        return f"offprof.load({', '.join(repr(str(path)) for path in self.paths)})"

    def report(self, *, frontier: bool = True) -> str:
        """Returns the report as a self-contained HTML page: that of the program's command `report`.

        Args:
            frontier: search for other policies and show their Pareto frontier; this takes most of the time.

        Raises:
            InputError: a file is not a trace.
            UnavailableError: the program `offprof` is missing.
        """
        options = [] if frontier else ["--no-frontier"]
        command = [find_program(), "report", *options, "-q", "-o", "-", *map(str, self.paths)]
        end = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if end.returncode != 0:
            kind = InputError if end.returncode == _USAGE_STATUS else OffprofError
            raise kind(end.stderr.strip().removeprefix("error: "))
        return end.stdout

    def _repr_html_(self) -> str:
        """Returns the report in a frame, so that its style and scripts are apart from those of the notebook."""
        if self._report is None:
            self._report = self.report()
        return (
            f'<iframe srcdoc="{html.escape(self._report)}" width="100%" height="{_FRAME_HEIGHT_PX}" '
            'sandbox="allow-scripts allow-downloads" style="border: 0"></iframe>'
        )


def load(*paths: str | os.PathLike[str]) -> LoadedTrace:
    """Returns traces for a notebook, which shows their report; several traces are compared.

    Args:
        paths: of trace files, `.json` or `.json.gz`.

    Raises:
        InputError: no path is given, or there is no such file.
    """
    if not paths:
        raise InputError("load needs the path of a trace", 'For example: offprof.load("t.json.gz")')
    files = tuple(Path(path) for path in paths)
    for file in files:
        if not file.is_file():
            raise InputError(f"there is no file {file}", "Record a trace with `offprof run` or offprof.profile.")
    return LoadedTrace(files)
