"""offprof: profiles and simulates activation offloading of PyTorch training programs."""

from .errors import InputError, UnavailableError, OffprofError

__all__ = ["InputError", "UnavailableError", "OffprofError"]
