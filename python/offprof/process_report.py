"""Figures of a process that used the virtual GPU, for the table of `offprof exec`."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from .ranks import RankPlace
from .virtual_gpu import VirtualGpu

# Names of the figures in a report, and of those of torch.cuda.memory_stats.
_PEAKS = {
    "peak_allocated_bytes": "allocated_bytes.all.peak",
    "peak_reserved_bytes": "reserved_bytes.all.peak",
    "peak_requested_bytes": "requested_bytes.all.peak",
}


class ProcessReport:
    """Writes the figures of this process to a file: first when torch initialises CUDA, without peaks,
    so that a process that is killed is not forgotten; and when the process ends.

    The file is `TIME-PID.json` in `folder`. offprof reads it (cli/reports/exec_report.h). A process
    that never uses the GPU writes nothing.
    """

    def __init__(self, gpu: VirtualGpu, folder: Path, place: RankPlace | None = None) -> None:
        """Reports on this process, which may be a rank, and the virtual GPU in it. Writes nothing yet."""
        self._gpu = gpu
        self._folder = folder
        self._place = place
        self._pid = 0  # the process that uses the GPU; 0: none yet
        self._started_ns = 0
        self._peaks: dict[str, int] = {}  # before the last reset of PyTorch's peaks
        self._torch: ModuleType | None = None

    def name_rank(self, place: RankPlace) -> None:
        """Reports from now on that this process is that rank."""
        self._place = place

    def watch(self, torch: ModuleType) -> None:
        """Starts watching this process, which has just imported torch."""
        self._torch = torch
        torch.cuda._lazy_call(self._begin)
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            reset = getattr(torch._C, name, None)
            if reset is not None:
                setattr(torch._C, name, self._before(reset, self._keep_peaks))
        atexit.register(self._end_with_interpreter)
        # Skips atexit; forked children of multiprocessing end so.
        os._exit = self._before(os._exit, self.finish)

    def finish(self) -> None:
        """Writes the final figures, if this process has used the GPU."""
        if self._pid != os.getpid() or self._torch is None:
            return
        self._torch.cuda.synchronize()  # on the virtual clock
        self._keep_peaks()
        state = self._gpu.state()
        if state.missing_device is not None:
            self._gpu.note(_how_to_get(state.missing_device))
        stats = self._stats()
        self._write(
            **self._peaks,
            out_of_memory_errors=stats.get("num_ooms", 0),
            modelled_time_ns=state.host_time_ns,
            unwritten_calls=state.unwritten_calls,
            unknown_sizes=state.unknown_sizes,
            value_reads=self._gpu.value_reads(),
            notes=self._gpu.notes(),
            **dataclasses.asdict(self._gpu.collectives()),
        )

    def _end_with_interpreter(self) -> None:
        self.finish()
        if self._pid == os.getpid() and self._torch is not None:
            _settle_backward(self._torch, self._gpu.device())

    def _begin(self) -> None:
        """Called when torch initialises CUDA: in a forked child again, if the parent had not."""
        self._pid = os.getpid()
        self._started_ns = time.time_ns()
        self._peaks = {}
        self._write()
        self._gpu.observe_operators()
        self._handle_sigterm()

    def _before(self, function: Callable[..., Any], first: Callable[[], None]) -> Callable[..., Any]:
        """Returns `function`, preceded by a call of `first`."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                first()
            except Exception as error:  # the program must go on as it would without us
                print(f"offprof: no figures of process {os.getpid()}: {error}", file=sys.stderr)
            return function(*args, **kwargs)

        return call

    def _keep_peaks(self) -> None:
        """Keeps PyTorch's peaks, which a program may reset."""
        if self._pid != os.getpid() or self._torch is None:
            return
        stats = self._stats()
        for figure, stat in _PEAKS.items():
            self._peaks[figure] = max(self._peaks.get(figure, 0), stats.get(stat, 0))

    def _stats(self) -> dict[str, int]:
        """Returns PyTorch's figures of the device that this process uses."""
        assert self._torch is not None
        stats: dict[str, int] = self._torch.cuda.memory_stats(self._gpu.device())
        return stats

    def _handle_sigterm(self) -> None:
        """Writes the figures before SIGTERM ends the process, unless the program handles SIGTERM."""
        is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if is_default and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._end)

    def _end(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _write(self, **figures: Any) -> None:
        rank = {} if self._place is None else {"rank": self._place.rank, "world_size": self._place.world_size}
        _write_report(self._folder, self._started_ns, {**rank, **figures})


def _settle_backward(torch: ModuleType, device: int) -> None:
    """Lets the thread of the device's backward pass drop what it holds of earlier passes.

    It drops Python objects of the last pass, such as FSDP's callbacks, when it gets to it. If the interpreter has
    ended by then, PyTorch aborts the process: "terminate called without an active exception" (pytorch#38228). On a
    virtual GPU nothing else gives the thread time, since no program waits for the device.
    """
    with contextlib.suppress(RuntimeError), torch.enable_grad():  # a program may end after an error of the device
        leaf = torch.empty(0, device=f"cuda:{device}", requires_grad=True)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(leaf))  # so that the thread is not the one that frees it
        gradients = (torch.empty(0, device=leaf.device),)
        # Tensor.backward executes Python code, after which an interrupted interpreter forgets the interrupt.
        engine = torch.autograd.Variable._execution_engine
        engine.run_backward((leaf.clone(),), gradients, False, False, (), allow_unreachable=True, accumulate_grad=True)


def _how_to_get(number: int) -> str:
    return (
        f"the program chose cuda:{number}, which does not exist: offprof exec --devices {number + 1} gives it so many "
        "devices, one for each process that it starts"
    )


def report_problem(folder: Path, problem: str) -> None:
    """Reports why this process could not use the virtual GPU."""
    _write_report(folder, time.time_ns(), {"problem": problem})


def _write_report(folder: Path, started_ns: int, figures: dict[str, Any]) -> None:
    """Writes a report beside its place, then renames it, so that no reader sees half of it."""
    command = [word.encode(errors="surrogateescape").decode(errors="replace") for word in sys.orig_argv]
    report = {"pid": os.getpid(), "command": command, "started_ns": started_ns, **figures}
    path = folder / f"{started_ns}-{os.getpid()}.json"
    new = path.with_suffix(".new")
    try:
        new.write_text(json.dumps(report))
        new.replace(path)
    except OSError as error:  # the process must go on, even when `offprof exec` has ended before it
        print(f"offprof: no figures of process {os.getpid()}: {error}", file=sys.stderr)
