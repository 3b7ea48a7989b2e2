"""Recordings that are made while a caller listens: see `collect`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recorder import Recording

_listening: list[list[Recording]] = []


@contextmanager
def collect() -> Iterator[list[Recording]]:
    """Collects the recordings of `offprof.record` and `offprof.profile` that are made within it."""
    recorded: list[Recording] = []
    _listening.append(recorded)
    try:
        yield recorded
    finally:
        _listening.pop()  # contexts nest


def announce(recording: Recording) -> None:
    """Gives a recording to all who listen."""
    for recorded in _listening:
        recorded.append(recording)
