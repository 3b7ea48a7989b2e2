"""Compares the gradients of a repeated step under policies with those without offloading."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import optimizer as _optimizers

if TYPE_CHECKING:
    from .recorder import _Session


class _State:
    """Everything that a step of a program starts from: tensors, optimizers, random numbers."""

    def __init__(self, parameters: list[torch.Tensor], buffers: list[torch.Tensor], optimizers: list[Any]) -> None:
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in [*parameters, *buffers]]
        self._gradients = [(tensor, None if tensor.grad is None else tensor.grad.clone()) for tensor in parameters]
        self._optimizers = [(optimizer, copy.deepcopy(optimizer.state_dict())) for optimizer in optimizers]
        self._torch_random = torch.get_rng_state()
        self._random = random.getstate()
        numpy = sys.modules.get("numpy")
        self._numpy_random = None if numpy is None else numpy.random.get_state()

    def restore(self) -> None:
        """Sets everything as it was."""
        with torch.no_grad():
            for tensor, value in self._tensors:
                tensor.copy_(value)
        for tensor, gradient in self._gradients:
            tensor.grad = None if gradient is None else gradient.clone()
        for optimizer, state in self._optimizers:
            optimizer.load_state_dict(copy.deepcopy(state))
        torch.set_rng_state(self._torch_random)
        random.setstate(self._random)
        if self._numpy_random is not None:
            sys.modules["numpy"].random.set_state(self._numpy_random)


class _Gradients:
    """Takes the gradients of a step, before the first optimizer step of each parameter: after it they may be gone."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters
        self._taken: dict[int, torch.Tensor | None] = {}

    def of(self, step: Callable[[], Any]) -> list[torch.Tensor | None]:
        """Runs the step and returns the gradients by parameter."""
        self._taken.clear()
        hook = _optimizers.register_optimizer_step_pre_hook(self._optimizer_begins)
        try:
            step()
        finally:
            hook.remove()
        self._take(self._parameters)
        return [self._taken[id(parameter)] for parameter in self._parameters]

    def _optimizer_begins(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._take([parameter for group in optimizer.param_groups for parameter in group["params"]])

    def _take(self, parameters: list[torch.Tensor]) -> None:
        for parameter in parameters:
            gradient = parameter.grad
            self._taken.setdefault(id(parameter), None if gradient is None else gradient.detach().clone())


def check(session: _Session, step: Callable[[], Any], policies: int) -> str:
    """Returns the verdict on the gradients under the first `policies` policies of the session.

    `bitwise` if all equal those without offloading; otherwise the first verdict that says something else. The
    watch of the session's driver is installed anew, and stays.
    """
    watch = session.driver.watch
    watch.install()
    parameters, buffers = watch.parameters(), watch.buffers()
    state = _State(parameters, buffers, watch.optimizers())
    gradients = _Gradients(parameters)

    def pass_under(policy: int | None) -> list[torch.Tensor | None]:
        state.restore()
        if policy is not None:
            session.native.begin_unrecorded_step(watch.parameters(), watch.buffers(), policy - 1)
        try:
            return gradients.of(step)
        finally:
            session.native.end_step()

    names = [f"parameter {number}" for number in range(len(parameters))]
    reference = session.extension.GradientCheck(names, lambda: pass_under(None))
    verdict = "bitwise"
    for policy in range(policies):
        found: str = reference.check(pass_under(policy), session.native.may_lose(policy - 1))
        if verdict == "bitwise":
            verdict = found
    state.restore()
    return verdict
