"""Loads the extension, after it has checked that torch is the one that the extension was built for."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types

from .errors import UnavailableError
from .gathered_parameters import report_gathered_parameters
from .torch_check import check_torch
from .wrapped_tensors import unwrap

# Processors of the process before a recording keeps some apart for the copies.
PROCESSORS = os.sched_getaffinity(0)


def _import_torch(version: str) -> None:
    """Imports torch, which must be of that version. Raises UnavailableError."""
    check_torch(version)
    try:
        importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise UnavailableError(
            f"torch of {sys.executable} cannot be imported: {error}",
            f"Check the installation: {sys.executable} -c 'import torch'",
        ) from None


def load_extension() -> types.ModuleType:
    """Imports torch and the extension, and lets saved tensors go through offprof's engine.

    Raises UnavailableError if torch or the extension does not fit this Python.
    """
    if importlib.util.find_spec("offprof._extension") is None:
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnavailableError(
            f"this offprof has no extension for {python} ({sys.executable})",
            "Choose the Python that offprof was built for: --python PATH; or build offprof with this Python: "
            "cmake --preset release -DOFFPROF_TORCH_PYTHON=PATH && cmake --build --preset release",
        )
    _import_torch(importlib.import_module("offprof.torch_version").TORCH_VERSION)
    try:
        extension = importlib.import_module("offprof._extension")
    except ImportError as error:
        raise UnavailableError(
            f"offprof's extension cannot be loaded: {error}",
            "Build offprof again: cmake --preset release && cmake --build --preset release",
        ) from None
    if not getattr(extension, "is_interposed", False):
        extension.interpose_autograd_engine()
        extension.set_unwrapper(unwrap)
        report_gathered_parameters(extension.add_gathered_parameter)
        extension.is_interposed = True  # type: ignore[attr-defined]
    return extension
