"""Checks torch before it is imported."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

from .errors import UnavailableError


def check_torch(wanted: str) -> None:
    """Raises UnavailableError unless this Python's torch is the one that offprof was built for.

    Args:
        wanted: version of torch without a local part, such as `2.11.0`.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise UnavailableError(
            f"this Python has no torch: {sys.executable}",
            f"Install it: {sys.executable} -m pip install torch=={wanted}; or choose another Python",
        )
    version = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    found = str(version["__version__"])
    install = f"Install torch {wanted} for CUDA: {sys.executable} -m pip install torch=={wanted}"
    if version.get("cuda") is None:
        kind = "for ROCm" if version.get("hip") else "without CUDA"
        raise UnavailableError(f"torch {found} in {spec.origin} was built {kind}", install)
    if _minor_version(found) != _minor_version(wanted):
        raise UnavailableError(
            f"torch {found} in {spec.origin} is another version than {wanted}, for which this offprof was built",
            f"{install}; or build offprof against torch {found}",
        )


def _minor_version(version: str) -> list[str]:
    return version.split("+")[0].split(".")[:2]
