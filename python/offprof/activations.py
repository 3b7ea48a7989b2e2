"""Activation offloading in a training program: `offprof.OffloadActivations`."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from .activations_report import OffloadingReport
from .errors import InputError, UnavailableError
from .native import load_extension

# Entries in a step, after which a program is taken to update its parameters without the optimizers that it had before.
_MOST_ENTRIES = 1000


class _Entered:
    """The context that is entered in this process: saved tensors of all threads go through it."""

    lock = threading.Lock()
    context: OffloadActivations | None = None
    thread = ""


def _default_device() -> str:
    import torch

    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "host"


def _settings(**values: Any) -> str:
    """Returns the settings that are not None as JSON."""
    given = {name: value for name, value in values.items() if value is not None}
    if isinstance(given.get("rules"), Sequence):
        given["rules"] = [dict(rule) for rule in given["rules"]]
    return json.dumps(given)


class OffloadActivations:
    """Offloads activations under a policy while it is entered.

    ::

        offloading = offprof.OffloadActivations("policy.json")
        for batch in data:
            with offloading:
                loss = model(batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(offloading.report())

    Tensors that autograd saves while it is entered, on any thread, go through the policy; backward may run outside.
    The context can be entered again and again, and several times in a step, as with gradient accumulation.

    A step ends where the program's optimizer of `torch.optim` has made its step, as for `offprof run`, or at each
    `step()`. In a program with neither, it ends where the context is entered and nothing of the graph before is left.
    Tensors that are older than the step stay on the device.

    The first step is only observed: prefetch, plans, encoding, and rules with `op` or `module` begin with the second
    one. A policy that recomputes offloads everything until two steps have saved the same tensors; then a step
    recomputes what its own operators have made as in those two, with the same random numbers. If the program saves
    other tensors than those that a plan was made for, a warning says so once, and the fallback of the policy file
    decides or, without one, the threshold.

    Saved-tensor hooks of the program that are entered within it take precedence. While `offprof run`, `offprof.profile`
    or `offprof.record` records the program, the context does nothing.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str] = "offload",
        *,
        threshold: int | str | None = None,
        stash: int | None = None,
        stash_bytes: int | str | None = None,
        prefetch: int | str | None = None,
        host_memory: int | str | None = None,
        rules: Sequence[Mapping[str, Any]] | None = None,
        disk: str | os.PathLike[str] | None = None,
        device: str | None = None,
    ) -> None:
        """Loads a policy. Settings that are given replace those of the policy. Sizes are bytes, or texts: `1MiB`.

        Args:
            policy: name of a preset (`keep`, `offload`, `trl`, `trl-trainer`), or path of a policy file.
            threshold: tensors of at least this size are offloaded.
            stash: most offloaded tensors that keep their device copy for a while in forward.
            stash_bytes: most bytes of them.
            prefetch: most bytes that are reloaded ahead of need in backward.
            host_memory: most host memory for offloaded tensors; those without room stay on the device.
            rules: as in a policy file, such as `{"module": "*lm_head", "placement": "device"}`.
            disk: folder for the tensors that the policy places on a disk; no file remains. A process has one disk.
            device: `host`, `cuda` or `cuda:N`; None: the current CUDA device, or `host` without CUDA. On `host`,
                tensors that are older than the first context are never offloaded.

        Raises:
            InputError: the policy cannot be read or carried out: it offloads parameters, or needs a disk that is not
                given.
            UnavailableError: this Python or machine lacks something.
        """
        self._extension = load_extension()
        from .code_locator import CodeLocator  # these import torch
        from .program_steps import program_steps

        self._locator = CodeLocator()
        settings = _settings(
            threshold_bytes=threshold,
            stash_count=stash,
            stash_bytes=stash_bytes,
            prefetch_bytes=prefetch,
            host_memory_bytes=host_memory,
            rules=rules,
        )
        self._native = self._extension.Offloading(
            os.fspath(policy), settings, device or _default_device(), os.fspath(disk or ""), self._locator.locate
        )
        self._process = os.getpid()
        self._entries = 0  # in the step
        self._has_manual_steps = False
        self._is_active = False  # it was entered in the last step
        self._known: tuple[int, int] | None = None  # numbers of roots and optimizers whose tensors are known
        self._steps = program_steps()
        self._steps.add(self)
        self._warn()

    @property
    def is_entered(self) -> bool:
        """Whether tensors that autograd saves go through the policy."""
        return _Entered.context is self

    def __enter__(self) -> OffloadActivations:
        """Offloads activations from now on.

        Raises InputError if this or another context is entered already, on any thread, and UnavailableError in a
        process that was forked after the context was created.
        """
        self._claim()
        try:
            if not self._steps.is_recording:
                self._enter()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Offloads no further activations. Those that are offloaded come back in backward."""
        if _Entered.context is not self:
            return
        self._native.leave()
        self._release()
        if kind is not None:
            self._native.abandon_step()

    def step(self) -> None:
        """Ends a step of the program, instead of its optimizers: call it after each step."""
        self._has_manual_steps = True
        self._end_step(self._extension.Boundary.STEP_END)
        self._begin_step(self._extension.Boundary.STEP_END)

    def report(self) -> OffloadingReport:
        """Returns the figures of the steps so far, beside those that the policy file predicts."""
        self._warn()
        return OffloadingReport(**json.loads(self._native.report()))

    def on_backward_end(self) -> None:
        """See StepContext."""
        self._native.end_backward()

    def on_inputs(self, tensors: list[Any]) -> None:
        """See StepContext."""
        self._native.begin_call(tensors)

    def on_outputs(self, tensors: list[Any]) -> None:
        """See StepContext."""
        self._native.end_call(tensors)

    def on_step_end(self) -> None:
        """See StepContext."""
        if self._has_manual_steps:
            return
        self._is_active = self._native.has_saved or self.is_entered
        self._end_step(self._extension.Boundary.STEP_END)

    def on_step_begin(self) -> None:
        """See StepContext. A context that was not entered in the last step begins one when it is entered."""
        if not self._has_manual_steps and self._is_active:
            self._begin_step(self._extension.Boundary.STEP_END)

    def on_fork(self) -> None:
        """See StepContext."""
        self._native.forget_in_child()
        if _Entered.context is self:
            _Entered.context = None

    def _enter(self) -> None:
        if self._native.has_failed and self._native.is_idle:
            self._native.abandon_step()
        takes_entries = not self._steps.has_order or self._entries >= _MOST_ENTRIES
        if not self._has_manual_steps and takes_entries and self._native.is_idle:
            self._end_step(self._extension.Boundary.ENTRY)
        if not self._native.has_step:
            self._begin_step(self._extension.Boundary.ENTRY)
        self._entries += 1
        self._native.enter()

    def _end_step(self, where: Any) -> None:
        if self._native.has_saved:
            self._steps.count_step()
        self._native.end_step(where)
        self._warn()

    def _begin_step(self, where: Any) -> None:
        self._learn_tensors()
        self._entries = 0
        self._native.begin_step(where)

    def _learn_tensors(self) -> None:
        """Learns the parameters and buffers of the models that were called, and of the optimizers."""
        watch = self._steps.watch
        roots = watch.roots()
        known = (len(roots), len(watch.optimizers()))
        if known == self._known:
            return
        self._known = known
        self._locator.learn(roots)
        self._native.set_tensors(watch.parameters(), watch.buffers())

    def _claim(self) -> None:
        if os.getpid() != self._process:
            raise UnavailableError(
                "this OffloadActivations was created before the process was forked, so its copy threads are not here",
                "Create it in the forked process.",
            )
        with _Entered.lock:
            other = _Entered.context
            if other is None:
                _Entered.context = self
                _Entered.thread = threading.current_thread().name
                return
        which = "this" if other is self else "another"
        raise InputError(
            f"{which} OffloadActivations is entered already, on the thread {_Entered.thread}: saved tensors of all "
            "threads go through it",
            "Leave it before you enter the next one. To keep tensors on the device in a part of the model, add a rule "
            "with the placement `device`.",
        )

    @staticmethod
    def _release() -> None:
        with _Entered.lock:
            _Entered.context = None

    def _warn(self) -> None:
        for note in self._native.take_notes():
            warnings.warn(f"OffloadActivations: {note}", UserWarning, stacklevel=3)
