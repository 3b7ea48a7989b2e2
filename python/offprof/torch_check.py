"""Checks torch before it is imported."""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from pathlib import Path

from .errors import UnavailableError

# The CUDA of the wheels that offprof supports, and in the names of the virtual GPU's libraries.
_CUDA_MAJOR = "13"


def check_torch(wanted: str) -> None:
    """Raises UnavailableError unless this Python's torch is the one that offprof was built for.

    Patch versions may differ. The error says what to install.

    Args:
        wanted: version of torch without a local part, such as `2.11.0`.
    """
    install = f"{sys.executable} -m pip install torch=={wanted}"
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise UnavailableError(
            f"this Python has no torch: {sys.executable}", f"Install it: {install}; or choose another Python"
        )
    version = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    found = str(version["__version__"])
    install = f"Install torch {wanted} for CUDA {_CUDA_MAJOR}: {install}"
    kind = _wrong_kind(version)
    if kind is not None:
        raise UnavailableError(f"torch {found} in {spec.origin} was built {kind}", install)
    if _minor_version(found) != _minor_version(wanted):
        raise UnavailableError(
            f"torch {found} in {spec.origin} is another version than {wanted}, for which this offprof was built",
            f"{install}; or {_another_build(_minor_version(found))}",
        )


def _wrong_kind(version: dict[str, object]) -> str | None:
    """Returns how a torch was built that offprof cannot work with; None if it can.

    Args:
        version: the variables of the module `torch.version`.
    """
    if version.get("hip"):
        return "for ROCm"
    cuda = version.get("cuda")
    if cuda is None:
        return "without CUDA"
    return None if str(cuda).split(".")[0] == _CUDA_MAJOR else f"for CUDA {cuda}"


def _another_build(minor: str) -> str:
    """Returns the way to an offprof for this minor version of torch."""
    supported = importlib.import_module("offprof.torch_version").SUPPORTED_VERSIONS
    if minor not in supported:
        return f"another that offprof supports: {', '.join(supported)}"
    return (
        f"build offprof for torch {minor}: "
        f"cmake --preset release -DOFFPROF_TORCH_PYTHON={sys.executable} && cmake --build --preset release"
    )


def _minor_version(version: str) -> str:
    return ".".join(version.split("+")[0].split(".")[:2])
