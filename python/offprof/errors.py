"""Exceptions of offprof."""

from __future__ import annotations


class OffprofError(Exception):
    """Problem that a user can cause and fix.

    Attributes:
        message: describes the problem, its place and its cause.
        hint: describes the next step; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        """Keeps both texts; `str` shows both."""
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)
        self.message = message
        self.hint = hint


class InputError(OffprofError):
    """An argument or an input file is wrong. The program exits with status 2."""


class UnavailableError(OffprofError):
    """This machine, process or environment lacks something. The program exits with status 3."""
