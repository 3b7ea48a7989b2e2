"""offprof for Python programs.

This module imports neither torch nor any module that does: the virtual GPU has to be opened before
torch is imported (`offprof.virtual_gpu`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import InputError, OffprofError, UnavailableError

if TYPE_CHECKING:
    from .activations import OffloadActivations
    from .activations_report import OffloadingReport
    from .comparison import Comparison, compare
    from .loaded_trace import LoadedTrace, load
    from .recorder import Recording, open_device, profile, record

__all__ = [
    "Comparison",
    "InputError",
    "LoadedTrace",
    "OffloadActivations",
    "OffloadingReport",
    "OffprofError",
    "Recording",
    "UnavailableError",
    "compare",
    "load",
    "open_device",
    "profile",
    "record",
]

# Modules of the names that are imported when they are first used.
_MODULES = {
    "Comparison": "comparison",
    "LoadedTrace": "loaded_trace",
    "OffloadActivations": "activations",
    "OffloadingReport": "activations_report",
    "Recording": "recorder",
    "compare": "comparison",
    "load": "loaded_trace",
    "open_device": "recorder",
    "profile": "recorder",
    "record": "recorder",
}


def __getattr__(name: str) -> Any:
    """Imports the module of a name when it is first used; most of them need torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
