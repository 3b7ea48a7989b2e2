"""Loads the extension, after it has checked that torch is the one that the extension was built for."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types

from .errors import UnavailableError

# Processors of the process before a recording keeps some apart for the copies.
PROCESSORS = os.sched_getaffinity(0)


def import_torch() -> types.ModuleType:
    """Imports torch. Raises UnavailableError, with the command that installs it, if that fails."""
    if importlib.util.find_spec("torch") is None:
        raise UnavailableError(
            f"{sys.executable} has no torch",
            f"Install it: {sys.executable} -m pip install torch; or choose another Python: --python PATH",
        )
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"torch of {sys.executable} cannot be imported: {error}",
            f"Check the installation: {sys.executable} -c 'import torch'",
        ) from None


def _built_for() -> str:
    """Returns the torch version in the name of the file that the build leaves beside the extension."""
    spec = importlib.util.find_spec("offprof.torch_version")
    if spec is None:
        return ""
    return str(importlib.import_module("offprof.torch_version").TORCH_VERSION)


def check_torch(torch: types.ModuleType) -> None:
    """Raises UnavailableError if torch is not the build that the extension needs."""
    version = torch.__version__.partition("+")[0]
    built_for = _built_for()
    advice = f"Install it: {sys.executable} -m pip install torch=={built_for}"
    if version.rsplit(".", 1)[0] != built_for.rsplit(".", 1)[0]:
        raise UnavailableError(
            f"{sys.executable} has torch {torch.__version__}, but this offprof was built for torch {built_for}",
            f"{advice}; or build offprof with that torch",
        )
    if torch.version.cuda is None:
        kind = "ROCm" if getattr(torch.version, "hip", None) else "CPU-only"
        raise UnavailableError(
            f"{sys.executable} has a {kind} build of torch ({torch.__version__}); offprof needs the CUDA build, "
            "which runs without a GPU too",
            f"{advice} --index-url https://download.pytorch.org/whl/cu130",
        )


def load_extension() -> types.ModuleType:
    """Imports torch and the extension, and lets saved tensors go through offprof's engine.

    Raises UnavailableError if torch or the extension does not fit this Python.
    """
    torch = import_torch()
    if importlib.util.find_spec("offprof._extension") is None:
        tag = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnavailableError(
            f"this offprof has no extension for {tag} of {sys.executable}",
            "Choose the Python that offprof was built for: --python PATH; or build offprof with this Python: "
            "cmake --preset release -DPython3_EXECUTABLE=PATH && cmake --build --preset release",
        )
    check_torch(torch)
    try:
        extension = importlib.import_module("offprof._extension")
    except ImportError as error:
        raise UnavailableError(
            f"offprof's extension cannot be loaded: {error}",
            "Build offprof again: cmake --preset release && cmake --build --preset release",
        ) from None
    if not getattr(extension, "is_interposed", False):
        extension.interpose_autograd_engine()
        extension.is_interposed = True  # type: ignore[attr-defined]
    return extension
