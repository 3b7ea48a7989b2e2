"""offprof for Python programs.

This module imports neither torch nor any module that does: the virtual GPU has to be opened before
torch is imported (`offprof.virtual_gpu`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InputError, OffprofError, UnavailableError

if TYPE_CHECKING:
    from .recorder import Recording, open_device, profile, record

__all__ = ["InputError", "OffprofError", "Recording", "UnavailableError", "open_device", "profile", "record"]


def __getattr__(name: str) -> Any:
    """Imports what needs torch when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import recorder

    return getattr(recorder, name)
