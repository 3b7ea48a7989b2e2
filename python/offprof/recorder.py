"""Records the training steps of a program that asks for it: `offprof.record` and `offprof.profile`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import recordings
from .errors import InputError
from .native import load_extension

if TYPE_CHECKING:
    from .script_driver import ScriptDriver


@dataclass(frozen=True)
class Recording:
    """Result of a recording.

    Attributes:
        measured: figures of a step under the policy, by the keys of `offprof run --format json`.
        gradients: `bitwise` if the gradients under all policies equal those without offloading; otherwise what
            differs; `not applicable` if they were not compared.
        compared: figures of a step under each policy of `compare`, in its order.
        steps: number of steps that were recorded and measured.
        path: file with the trace; None: none was written.
    """

    measured: dict[str, Any]
    gradients: str
    compared: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    path: Path | None = None


@dataclass(frozen=True)
class _Settings:
    policies: list[str]
    device: str
    output: Path | None
    steps: int | None
    warmup: int
    threads: int


def _open_device(device: str) -> None:
    """Opens the virtual GPU if `device` names one and it is not open yet."""
    kind, _, profile = device.partition(":")
    if kind != "virtual":
        return
    from . import virtual_gpu

    if virtual_gpu.opened_virtual_gpu() is None:
        virtual_gpu.open_virtual_gpu(profile or virtual_gpu.DEFAULT_PROFILE)


def _device_of_process() -> str:
    from . import virtual_gpu

    gpu = virtual_gpu.opened_virtual_gpu()
    return "host" if gpu is None else f"virtual:{gpu.state().profile}"


class _Session:
    """One recording of this process."""

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        _open_device(settings.device)
        self.extension = load_extension()
        self._output_lock = None if settings.output is None else self.extension.OutputLock(str(settings.output))
        request = self.extension.make_request(
            program=Path(sys.argv[0]).name or "program",
            device=settings.device,
            policies=settings.policies,
            steps=settings.steps,
            warmup=settings.warmup,
            threads=settings.threads,
            trace_path=str(settings.output or ""),
            outcome_path="",
        )
        from .code_locator import CodeLocator  # these import torch
        from .script_driver import Afterwards, ScriptDriver

        locator = CodeLocator()
        self.native = self.extension.Recording(request, lambda what: None, locator.locate)
        self.driver: ScriptDriver = ScriptDriver(self.native, self.extension.Phase, locator, lambda: Afterwards.LEAVE)
        self.driver.watch.install()

    def fail(self) -> None:
        """Ends the recording because the program failed."""
        if self.driver.is_fork:
            return
        self.native.fail()
        self.driver.watch.remove()
        self.driver.release_garbage()
        self.unlock_output()

    def unlock_output(self) -> None:
        """Lets other processes write the trace's file."""
        self._output_lock = None

    def result(self) -> Recording:
        """Writes the trace and returns the result."""
        self.native.write()
        self.unlock_output()
        outcome = json.loads(self.native.outcome)
        recording = Recording(
            measured=json.loads(self.native.measured),
            gradients=self.native.gradients,
            compared=[compared["measured"] for compared in outcome["compared"]],
            steps=self.native.steps,
            path=self._settings.output,
        )
        recordings.announce(recording)
        return recording


def _settings(
    policy: str | os.PathLike[str],
    compare: Sequence[str | os.PathLike[str]],
    device: str | None,
    output: str | os.PathLike[str] | None,
    steps: int | None,
    warmup: int,
    threads: int | None,
) -> _Settings:
    return _Settings(
        policies=[os.fspath(path) for path in (policy, *compare)],
        device=device or _device_of_process(),
        output=None if output is None else Path(output).absolute(),
        steps=steps,
        warmup=warmup,
        threads=threads or max(1, (os.cpu_count() or 1) - 1),
    )


class profile:  # noqa: N801
    """Records the training steps within it.

    ::

        with offprof.profile(device="host", output="trace.json.gz") as p:
            model = make_model()
            for batch in data:
                train(batch)
                p.step()
        print(p.result.measured)

    A step ends at each `p.step()`; if there are none, where the optimizers step. Create the model within, so that
    its memory is counted. After the recording the program trains on as it would without offprof.
    """

    def __init__(
        self,
        *,
        policy: str | os.PathLike[str] = "keep",
        compare: Sequence[str | os.PathLike[str]] = (),
        device: str | None = None,
        output: str | os.PathLike[str] | None = None,
        steps: int | None = None,
        warmup: int = 1,
        threads: int | None = None,
    ) -> None:
        """Describes a recording, which begins with the `with` statement.

        Args:
            policy: preset or policy file under which steps are measured.
            compare: further ones, which are measured afterwards.
            device: `host`, `cuda`, `cuda:N`, or `virtual[:PROFILE]` (before the first import of torch); None: the
                virtual GPU if the process has one, as under `offprof exec` and `pytest --offprof-device`, else `host`.
            output: file for the trace; `.gz` compresses it; None: none.
            steps: measured steps under each policy; None: as many as a recording of 15 steps has, 1 to 3.
            warmup: steps that are not recorded; the first one creates the state of the optimizer.
            threads: intra-op threads; None: all cores but one, which is left for the copies.
        """
        self._result: Recording | None = None
        self._settings = _settings(policy, compare, device, output, steps, warmup, threads)
        self._session: _Session | None = None

    @property
    def is_done(self) -> bool:
        """Whether everything is recorded."""
        return self._session is not None and self._session.driver.is_done

    @property
    def result(self) -> Recording:
        """The recording. Raises InputError before the end of the `with` statement."""
        if self._result is None:
            raise InputError("offprof.profile has no result yet", "Read it after the `with` statement.")
        return self._result

    def __enter__(self) -> profile:
        """Begins the recording. Raises OffprofError if the device or a policy cannot be opened."""
        self._session = _Session(self._settings)
        return self

    def step(self) -> None:
        """Ends a training step. Raises InputError if the steps cannot be recorded."""
        if self._session is not None and not self.is_done:
            self._session.driver.tick_by_hand()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the recording and writes the trace. Raises InputError if not everything is recorded."""
        session = self._session
        if session is None:
            return
        if kind is not None:
            session.fail()
            return
        if session.driver.is_fork:
            raise InputError(
                "offprof.profile ended in a fork of the process that records: only that one writes the recording",
                "End forked processes within the `with` statement, by os._exit, or fork before it.",
            )
        session.driver.close()
        if not session.driver.is_done:
            session.unlock_output()
            raise InputError(
                f"offprof.profile ended after {session.native.steps} steps, before everything was recorded",
                f"Train for {session.native.steps_left} more within it.",
            )
        self._result = session.result()


def record(
    step: Callable[[], Any],
    *,
    policy: str | os.PathLike[str] = "keep",
    compare: Sequence[str | os.PathLike[str]] = (),
    device: str | None = None,
    output: str | os.PathLike[str] | None = None,
    steps: int | None = None,
    warmup: int = 1,
    threads: int | None = None,
    check_gradients: bool = True,
) -> Recording:
    """Records a function that makes one training step, and calls it as often as needed.

    Since the step can be repeated, its gradients are compared with those of the same step without offloading:
    from the same parameters, buffers, optimizer states and random numbers, under each policy. The function must
    not depend on anything else, such as the position of a data loader. Its model is created when it is first
    called, so that its memory is counted; see `open_device` otherwise.

    Args:
        step: makes one step: forward, backward, and usually an optimizer's step.
        check_gradients: compare gradients.
        policy, compare, device, output, steps, warmup, threads: see profile.

    Raises:
        InputError: the steps differ, or cannot be recorded.
        UnavailableError: this Python or machine lacks something.
    """
    settings = _settings(policy, compare, device, output, steps, warmup, threads)
    session = _Session(settings)
    try:
        while not session.driver.is_done:
            step()
            session.driver.tick_by_hand()
        if check_gradients and not settings.device.startswith("virtual"):
            from .gradient_check import check

            session.native.gradients = check(session, step, len(settings.policies))
    except BaseException:
        session.fail()
        raise
    finally:
        session.driver.watch.remove()
    return session.result()


def open_device(device: str | None = None) -> None:
    """Begins to count the memory of a device, for a model that is created before `record` or `profile` begins.

    Call it before the model is created; for a virtual GPU, before the first import of torch. None: see profile.
    """
    device = device or _device_of_process()
    _open_device(device)
    load_extension().open_device(device)
