"""offprof for Python programs.

This module imports neither torch nor any module that does: the virtual GPU has to be opened before
torch is imported (`offprof.virtual_gpu`).
"""

from .errors import InputError, OffprofError, UnavailableError

__all__ = ["InputError", "OffprofError", "UnavailableError"]
