"""Ranks that run at the same time, as torchrun starts them, each with a virtual GPU of its own.

Collectives of tensors carry small values between them, by files that the virtual GPU writes, and nothing else.
Python objects reach the other ranks through the store of `torch.distributed`. Imported after torch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import torch
from torch.distributed import distributed_c10d

from .errors import InputError
from .object_collectives import carry_objects
from .virtual_gpu import VirtualGpu

# Seconds for which a rank waits for a value of another one.
PATIENCE_VARIABLE = "OFFPROF_PEER_TIMEOUT"
_PATIENCE_S = 300
_TORCH = os.path.dirname(torch.__file__) + os.sep


def talk_to_peers(gpu: VirtualGpu, folder: Path) -> None:
    """Lets collectives of objects and of small tensors of this process reach the other ranks.

    `folder` is the same for all ranks. Raises InputError if the variable OFFPROF_PEER_TIMEOUT is no whole number of
    seconds.
    """
    text = os.environ.get(PATIENCE_VARIABLE, str(_PATIENCE_S))
    if not text.isdecimal() or int(text) == 0:
        raise InputError(f"{PATIENCE_VARIABLE}={text} is not a whole number of seconds", "Give 1 or more.")
    gpu.exchange_with_peers(folder, int(text), _call_site)
    carry_objects(_StoreVoices())


def _call_site() -> str:
    """Returns the file and line of the innermost frame of this thread that is not torch's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_TORCH) and os.path.dirname(file) != os.path.dirname(__file__):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "backward"  # of autograd, on a thread of its own


class _StoreVoices:
    """What ranks say goes through the store by which they found each other."""

    @property
    def is_alone(self) -> bool:
        """False: the other ranks run too."""
        return False

    def say(self, key: str, value: bytes) -> None:
        """Puts the value into the store. There it stays, since any number of ranks may hear it."""
        _store().set(_key(key), value)

    def hear(self, key: str, rank: int) -> bytes:
        """Waits until the value is in the store. Raises DistStoreError if it does not come in time."""
        del rank
        value: bytes = _store().get(_key(key))
        return value


def _store() -> distributed_c10d.Store:
    return distributed_c10d._get_default_store()


def _key(key: str) -> str:
    return f"offprof/{key}"
