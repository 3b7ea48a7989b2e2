"""Runs the program `offprof` that a wheel contains, in place of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Runs the program with the arguments of this process. It does not return.

    Scripts then run in the Python of this virtual environment, unless another one is active.
    """
    program = str(Path(__file__).parent / "bin" / "offprof")
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    os.execv(program, [program, *sys.argv[1:]])
