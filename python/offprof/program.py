"""Runs the program `offprof` that a wheel contains, in place of this process."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def _show_torch() -> None:
    """Lets the program find a torch that is not beside this package, such as that of the system's Python."""
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return
    folder = Path(torch.origin).parent
    if folder.parent == Path(__file__).parents[1]:
        return
    known = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder / "lib"), *([known] if known else [])])


def main() -> None:
    """Runs the program with the arguments of this process. It does not return.

    Scripts then run in the Python of this virtual environment, unless another one is active.
    """
    _show_torch()
    program = str(Path(__file__).parent / "bin" / "offprof")
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    os.execv(program, [program, *sys.argv[1:]])
