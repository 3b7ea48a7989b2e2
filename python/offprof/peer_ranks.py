"""Ranks that run at the same time, as torchrun starts them, each with a virtual GPU of its own.

Collectives of tensors carry small values between them, by files that the virtual GPU writes, and nothing else.
Python objects go through files too. Imported after torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed import distributed_c10d

from .code_locator import call_site
from .errors import InputError
from .object_collectives import carry_objects
from .ranks import RankPlace
from .virtual_gpu import VirtualGpu

# Seconds for which a rank waits for a value of another one.
PATIENCE_VARIABLE = "OFFPROF_PEER_TIMEOUT"
_PATIENCE_S = 300
_BETWEEN_LOOKS_S = 0.01  # into the folder, after which Python handles signals


def talk_to_peers(gpu: VirtualGpu, place: RankPlace, folder: Path) -> None:
    """Lets collectives of objects and of small tensors of this process, which is a rank, reach the other ranks.

    `folder` is the same for all ranks. Raises InputError if the variable OFFPROF_PEER_TIMEOUT is no whole number of
    seconds.
    """
    text = os.environ.get(PATIENCE_VARIABLE, str(_PATIENCE_S))
    if not text.isdecimal() or int(text) == 0:
        raise InputError(f"{PATIENCE_VARIABLE}={text} is not a whole number of seconds", "Give 1 or more.")
    gpu.exchange_with_peers(folder, place.rank, place.world_size, int(text), call_site, _file_of_signals())
    voices = _FolderVoices(place.rank, folder, int(text))
    _after_group_of_job(voices.join_job)
    carry_objects(gpu, voices)


def _after_group_of_job(act: Callable[[], None]) -> None:
    """Lets `act` be called whenever the process group of all ranks has been made."""
    update = distributed_c10d._update_default_pg

    @functools.wraps(update)
    def update_and_act(group: Any) -> None:
        update(group)
        if group is not None:
            act()

    distributed_c10d._update_default_pg = update_and_act


def _file_of_signals() -> int:
    """Returns a file that is not blocking, to which Python writes the numbers of signals that it has a handler for: the
    handlers themselves run only after a wait for another rank. -1 outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return -1
    come, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=_forget_signals)  # those of workers are not this process's
    return come


def _forget_signals() -> None:
    with contextlib.suppress(ValueError):  # forked by another thread than the main one
        signal.set_wakeup_fd(-1)


class _FolderVoices:
    """What ranks say goes through files: the store by which they found each other takes messages of 8 MiB at most."""

    def __init__(self, rank: int, folder: Path, patience_s: int) -> None:
        self._rank = rank
        self._folder = folder
        self._patience_s = patience_s

    @property
    def is_alone(self) -> bool:
        """False: the other ranks run too, unless PyTorch's fake process group stands for them."""
        return _is_fake()

    def join_job(self) -> None:
        """Writes this process's number into the folder, where the other ranks find it. Not before the job has a name: a
        command may run several jobs, and the processes of earlier ones have ended."""
        if _is_fake():
            return
        self._process_of(self._rank, _name_of_job()).write_text(str(os.getpid()))

    def say(self, key: str, value: bytes) -> None:
        """Puts the value into the folder. There it stays, since any number of ranks may hear it."""
        if _is_fake():
            return
        unfinished = self._folder / f"unfinished-{self._rank}-{threading.get_ident()}"
        unfinished.write_bytes(value)
        unfinished.replace(self._said(key, _name_of_job()))

    def hear(self, key: str, rank: int) -> bytes:
        """Waits until the value is in the folder. Raises RuntimeError if it does not come in time, or if the process
        of that rank has ended."""
        if _is_fake():
            raise RuntimeError(f"the object of rank {rank} is not known: a fake process group has no other ranks")
        deadline = time.monotonic() + self._patience_s
        job = _name_of_job()
        said, process = self._said(key, job), self._process_of(rank, job)
        while not said.exists():
            if _has_ended(process) and not said.exists():
                raise RuntimeError(f"rank {self._rank} waits for an object of rank {rank}, whose process has ended")
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"rank {self._rank} has waited {self._patience_s} s for an object of rank {rank}: it does not "
                    f"call the same collective of objects, or is late ({PATIENCE_VARIABLE}=SECONDS waits longer)"
                )
            time.sleep(_BETWEEN_LOOKS_S)
        return said.read_bytes()

    def _said(self, key: str, job: str) -> Path:
        return self._folder / f"object-{job}-{key}"

    def _process_of(self, rank: int, job: str) -> Path:
        return self._folder / f"process-{job}-{rank}"


def _has_ended(process: Path) -> bool:
    """Returns True if the process whose number is in the file has ended; False if it has not, or has not begun."""
    try:
        os.kill(int(process.read_text()), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):  # not written yet
        return False
    return False


def _is_fake() -> bool:
    """Returns True if the job's process group is PyTorch's fake one: its ranks do not run, and its store keeps nothing."""
    return str(distributed_c10d.get_backend()) == "fake"


def _name_of_job() -> str:
    """Returns a name of the job of this rank. A command may run several jobs, one after the other."""
    store = distributed_c10d._get_default_store()
    # After a failure torchrun starts all ranks again, over the same store.
    key = f"offprof/job-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    if store.add(f"{key}-claims", 1) == 1:
        store.set(key, uuid.uuid4().hex)
    return str(store.get(key).decode())
