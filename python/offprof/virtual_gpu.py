"""The virtual GPU: CUDA without a GPU, for this process.

PyTorch's own CUDA code runs, its caching allocator included, over libraries that keep the books and
do no work. So the memory figures of `torch.cuda` are those of a GPU, and the values of tensors on the
GPU do not exist: reading one gives 0.

    from offprof.virtual_gpu import open_virtual_gpu

    gpu = open_virtual_gpu("h200")
    import torch  # after open_virtual_gpu
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InputError, UnavailableError
from .moves_to_host import tell_moves
from .torch_check import check_torch
from .torch_compile import adapt_torch_compile

DEFAULT_PROFILE = "h200"

_OPENER = "liboffprof_virtual_gpu_opener.so"
_OBSERVER = "liboffprof_cuda.so"  # links torch, so it is opened after torch
_BUILD_AGAIN = "Build offprof again: cmake --preset release && cmake --build --preset release"
_CALL_SITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
_BAD_INPUT = 2  # status of offprof_virtual_gpu_open: an argument is wrong


@dataclass(frozen=True)
class CollectiveCount:
    """Collectives of one kind.

    Attributes:
        name: `all_reduce`, for example.
        calls: number of calls.
        bytes: sum of the messages, counted as nccl-tests does: for an all-gather the gathered tensor, for
            a reduce-scatter the whole input.
        time_ns: sum of the modelled durations.
        least_time_ns: lower end of the range of the sum of real durations.
        most_time_ns: upper end of that range.
    """

    name: str
    calls: int
    bytes: int
    time_ns: int
    least_time_ns: int
    most_time_ns: int

    def __sub__(self, earlier: CollectiveCount) -> CollectiveCount:
        """Returns the collectives after an earlier count of the same kind."""
        return CollectiveCount(
            self.name,
            self.calls - earlier.calls,
            self.bytes - earlier.bytes,
            self.time_ns - earlier.time_ns,
            self.least_time_ns - earlier.least_time_ns,
            self.most_time_ns - earlier.most_time_ns,
        )


@dataclass(frozen=True)
class Collectives:
    """Collectives that a process has called until one time.

    Attributes:
        communicators: the most communicators of NCCL that existed at one time.
        exposed_collectives_ns: modelled time for which the compute stream ran collectives or waited for them.
        mismatch: a collective that differs from that of a rank which ran before, with both places; empty: none.
        collectives: counts by kind.
    """

    communicators: int
    exposed_collectives_ns: int
    mismatch: str
    collectives: tuple[CollectiveCount, ...]


@dataclass(frozen=True)
class GpuState:
    """State of the virtual GPU at one time.

    Attributes:
        profile: name of the GPU profile.
        host_time_ns: virtual clock of the host, in nanoseconds. Launches and synchronisation advance
            it. Simulated, never measured.
        launches: number of kernels launched.
        unwritten_calls: CUDA functions that were called but are not implemented: they did nothing.
        unknown_sizes: sizes, since the last state, that only NVIDIA's libraries know. They count as
            0, so a real GPU uses more memory.
        missing_device: largest number of a device that the program chose and that does not exist; None: there is none.
    """

    profile: str
    host_time_ns: int
    launches: int
    unwritten_calls: tuple[str, ...]
    unknown_sizes: tuple[str, ...]
    missing_device: int | None


class VirtualGpu:
    """The virtual GPU of this process. `open_virtual_gpu` creates it."""

    def __init__(self, library: ctypes.CDLL, libraries: Path) -> None:
        """Wraps the library that has opened the GPU; `libraries` is its folder."""
        self._library = library
        self._libraries = libraries
        self._observer: ctypes.CDLL | None = None
        self._is_observed = False
        self._notes: list[str] = []
        self._call_site: Any = None  # the library calls it as long as the process lives

    def state(self) -> GpuState:
        """Returns the current state. Does not wait for work in progress."""
        text: bytes = self._library.offprof_virtual_gpu_state()
        state: dict[str, Any] = json.loads(text)
        return GpuState(
            profile=state["profile"],
            host_time_ns=state["host_time_ns"],
            launches=state["launches"],
            unwritten_calls=tuple(state["unwritten_calls"]),
            unknown_sizes=tuple(state["unknown_sizes"]),
            missing_device=state["missing_device"],
        )

    def collectives(self) -> Collectives:
        """Returns the collectives that were called until now."""
        text: bytes = self._library.offprof_virtual_gpu_collectives()
        found: dict[str, Any] = json.loads(text)
        found["collectives"] = tuple(CollectiveCount(**count) for count in found["collectives"])
        return Collectives(**found)

    def observe_operators(self) -> None:
        """Tells the virtual GPU from now on which operators launch its kernels.

        Without it, each kernel takes the shortest time of a kernel. Call it when torch has initialised
        CUDA and nothing is allocated on the device; later calls do nothing.

        Raises UnavailableError if the library is missing or was built for another torch.
        """
        if self._open_observer().offprof_observe_process() != 0:
            raise UnavailableError("the virtual GPU was not opened in this process")
        self._is_observed = True

    def value_reads(self) -> tuple[str, ...]:
        """Returns the operators, since observe_operators, that read values back from the device: zeros."""
        if not self._is_observed:
            return ()
        names: bytes = self._open_observer().offprof_value_reads_of_process()
        return tuple(names.decode().split())

    def note_moves(self, are_moves: bool) -> None:
        """Tells that what this thread copies to the host from now on is moved there and not read, or no more.

        Calls nest. Raises UnavailableError as observe_operators does.
        """
        self._open_observer().offprof_note_moves(int(are_moves))

    def _open_observer(self) -> ctypes.CDLL:
        """Returns the library that observes operators. Call it after the import of torch."""
        if self._observer is None:
            path = self._libraries.parent / _OBSERVER
            try:
                self._observer = ctypes.CDLL(str(path))
            except OSError as error:
                raise UnavailableError(f"cannot open {path}: {error}", _BUILD_AGAIN) from error
            self._observer.offprof_value_reads_of_process.restype = ctypes.c_char_p
        return self._observer

    def device(self) -> int:
        """Returns the number of the device that the process uses: the first one that it allocated memory on."""
        number: int = self._library.offprof_virtual_gpu_device()
        return number

    def note_group(self, key: bytes, ranks: int, nodes: int, name: str = "") -> None:
        """Tells how many ranks a communicator connects, and on how many nodes they are.

        Args:
            key: unique id of the communicator, or the color of the part that is split off, as a number.
            ranks: number of ranks.
            nodes: number of nodes.
            name: the same on all ranks of the communicator. Empty: the key is.
        """
        self._library.offprof_virtual_gpu_note_group(key, len(key), ranks, nodes, name.encode())

    def let_watchdogs_look(self) -> None:
        """Waits until the watchdogs of ProcessGroupNCCL have seen the ends of the collectives so far, up to 100 ms.

        PyTorch keeps the tensors of an all-reduce that nobody waits for until then.
        """
        self._library.offprof_virtual_gpu_let_watchdogs_look()

    def exchange_with_peers(
        self, folder: Path, rank: int, ranks: int, patience_s: int, call_site: Callable[[], str], signals: int = -1
    ) -> None:
        """Lets the ranks of a job that run at the same time on this machine exchange small values.

        Args:
            folder: an existing folder, the same for all ranks of the job.
            rank: of this process in the job.
            ranks: of the job.
            patience_s: seconds for which a rank waits for a value of another. 0: ranks run one after the other, so
                that they compare their collectives only.
            call_site: returns where the program is, for messages; called on any thread.
            signals: file, not blocking, of the numbers of signals that have come (signal.set_wakeup_fd); -1: none.
        """

        def write_site(text: int, size: int) -> None:
            site = call_site().encode(errors="replace")[: size - 1] + b"\0"
            ctypes.memmove(text, site, len(site))

        self._call_site = _CALL_SITE(write_site)
        self._library.offprof_virtual_gpu_exchange_with_peers(
            os.fsencode(folder), rank, ranks, patience_s, signals, self._call_site
        )

    def note_objects(self, are_carried: bool) -> None:
        """Tells that the collectives which this thread calls carry Python objects from now on, or no more.

        Copies of their contents to the host read nothing then, and a rank alone does not compare their sizes with those
        of other ranks.
        """
        self._library.offprof_virtual_gpu_note_objects(int(are_carried))

    def stop_exchange(self) -> None:
        """Exchanges nothing with other ranks from now on: this process stops before its program has ended."""
        self._library.offprof_virtual_gpu_stop_exchange()

    def note(self, text: str) -> None:
        """Adds a note about the figures of this process; each text once."""
        if text not in self._notes:
            self._notes.append(text)

    def notes(self) -> tuple[str, ...]:
        """Returns the notes so far, in order."""
        return tuple(self._notes)


class _Process:
    """State of this process."""

    gpu: VirtualGpu | None = None


def opened_virtual_gpu() -> VirtualGpu | None:
    """Returns the virtual GPU of this process, or None if it is not open."""
    return _Process.gpu


def find_libraries() -> Path:
    """Returns the folder of the virtual GPU's libraries.

    They are beside this package's modules, in a build folder as in an installation. Raises
    UnavailableError if they are missing.
    """
    place = Path(__file__).parent / "virtual_gpu"
    if (place / _OPENER).is_file():
        return place
    raise UnavailableError(
        f"the virtual GPU's libraries are not built: there is no {place / _OPENER}",
        "Run in offprof's source folder: scripts/setup.sh && cmake --preset release && cmake --build --preset release",
    )


def open_virtual_gpu(
    profile: str | os.PathLike[str] = DEFAULT_PROFILE,
    *,
    memory_limit_bytes: int | None = None,
    devices: int = 1,
    cluster: str | os.PathLike[str] | None = None,
    balanced_experts: bool = False,
    libraries: str | os.PathLike[str] | None = None,
) -> VirtualGpu:
    """Opens the virtual GPU in this process, before the first `import torch`.

    Also adapts torch.compile (see `torch_compile`), and sets environment variables of this process:
    caches of compiled kernels are kept apart from the user's (see `separate_caches`), and
    `CUDA_VISIBLE_DEVICES` names the devices.

    Args:
        profile: name of a built-in GPU profile, or path of a profile file.
        memory_limit_bytes: bytes that the device gives out; None: the profile's memory.
        devices: number of devices that the process sees. It may use one of them.
        cluster: name of a built-in cluster profile, or path of one, for the times of collectives; None: the usual
            one of the card.
        balanced_experts: assume that the experts of a layer get equally many tokens, where the program reads how
            many; otherwise it reads zeros.
        libraries: folder of the virtual GPU's libraries; None: `find_libraries()`.

    Raises:
        InputError: there is no such profile or cluster, the limit or the number of devices is not positive, or a virtual GPU
            is open.
        UnavailableError: the libraries are missing, torch is missing or of another version or is
            imported already, or a real CUDA library is loaded already.
    """
    if memory_limit_bytes is not None and memory_limit_bytes <= 0:
        raise InputError(f"the memory limit is not positive: {memory_limit_bytes}")
    folder = find_libraries() if libraries is None else Path(libraries)
    library = _load_opener(folder)
    check_torch(library.offprof_virtual_gpu_torch_version().decode())
    status = library.offprof_virtual_gpu_open(
        os.fsencode(folder),
        os.fsencode(profile),
        memory_limit_bytes or 0,
        devices,
        os.fsencode(cluster or ""),
        int(balanced_experts),
    )
    if status != 0:
        problem = InputError if status == _BAD_INPUT else UnavailableError
        raise problem(library.offprof_virtual_gpu_error().decode(), library.offprof_virtual_gpu_hint().decode())
    gpu = _Process.gpu = VirtualGpu(library, folder)
    if balanced_experts:
        gpu.note("experts are assumed to get equally many tokens (--assume balanced-experts)")
    separate_caches(gpu.state().profile)
    adapt_torch_compile(gpu.note)
    tell_moves(gpu.note_moves)
    os.environ["TRITON_LIBCUDA_PATH"] = str(folder)  # Triton links its launchers with libcuda.so.1
    # These devices, also where NVIDIA's management library counts real ones.
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(devices)))
    return gpu


def separate_caches(profile: str) -> None:
    """Gives compiled kernels of a virtual GPU folders of their own, through environment variables.

    The virtual GPU has the name of the real one, and inductor's and Triton's caches tell devices
    apart by name only: a real GPU could otherwise load what was tuned without one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "offprof" / profile
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(cache / "triton")


def _load_opener(folder: Path) -> ctypes.CDLL:
    """Loads the library that opens the virtual GPU. Raises UnavailableError."""
    path = folder / _OPENER
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise UnavailableError(f"cannot open {path}: {error}", _BUILD_AGAIN) from error
    text, number = ctypes.c_char_p, ctypes.c_int
    library.offprof_virtual_gpu_open.argtypes = [text, text, ctypes.c_int64, number, text, number]
    library.offprof_virtual_gpu_let_watchdogs_look.argtypes = []
    library.offprof_virtual_gpu_let_watchdogs_look.restype = None
    library.offprof_virtual_gpu_note_group.argtypes = [text, ctypes.c_int64, number, number, text]
    library.offprof_virtual_gpu_note_group.restype = None
    library.offprof_virtual_gpu_exchange_with_peers.argtypes = [text, number, number, number, number, _CALL_SITE]
    library.offprof_virtual_gpu_exchange_with_peers.restype = None
    library.offprof_virtual_gpu_note_objects.argtypes = [number]
    library.offprof_virtual_gpu_note_objects.restype = None
    library.offprof_virtual_gpu_stop_exchange.argtypes = []
    library.offprof_virtual_gpu_stop_exchange.restype = None
    library.offprof_virtual_gpu_open.restype = ctypes.c_int
    for function in ("collectives", "error", "hint", "state", "torch_version"):
        getattr(library, f"offprof_virtual_gpu_{function}").restype = ctypes.c_char_p
    return library
