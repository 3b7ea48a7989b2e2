"""Watches a training program: its optimizers, its backward passes, and its root modules."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.nn.modules import module as _modules
from torch.optim import optimizer as _optimizers

from .root_calls import RootCalls, tensors_of


class ProgramListener(Protocol):
    """Receives the events of a program, on the threads on which they happen."""

    def on_backward_begin(self) -> None:
        """The outermost backward pass begins."""

    def on_backward_end(self) -> None:
        """The outermost backward pass has ended without an exception."""

    def on_inputs(self, tensors: list[torch.Tensor]) -> None:
        """A root module is about to be called with these tensors, which have no history."""

    def on_outputs(self, tensors: list[torch.Tensor]) -> None:
        """A root module has returned these tensors."""

    def on_optimizer_begin(self) -> None:
        """An optimizer begins its step."""

    def on_optimizer_end(self, optimizer: int) -> None:
        """An optimizer has made its step. Optimizers are numbered in the order of their first steps."""


class _BackwardWatch:
    """Stands in for autograd's engine in ``torch.autograd`` and reports the outermost backward passes."""

    def __init__(self, engine: Any, listener: ProgramListener) -> None:
        self.engine = engine
        self.listener = listener
        self._depth = 0

    def run_backward(self, *args: Any, **options: Any) -> Any:
        if self._depth == 0:
            self.listener.on_backward_begin()
        self._depth += 1
        try:
            result = self.engine.run_backward(*args, **options)
        finally:
            self._depth -= 1
        if self._depth == 0:
            self.listener.on_backward_end()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def _installed_watches() -> list[_BackwardWatch]:
    """Returns the installed watches, the last one first."""
    watches = []
    engine = torch.autograd.variable.Variable._execution_engine
    while isinstance(engine, _BackwardWatch):
        watches.append(engine)
        engine = engine.engine
    return watches


def _remove_backward_watch(watch: _BackwardWatch) -> None:
    """Removes the watch, whichever others were installed since."""
    variable = torch.autograd.variable.Variable
    if variable._execution_engine is watch:
        variable._execution_engine = watch.engine
    for other in _installed_watches():
        if other.engine is watch:
            other.engine = watch.engine


class ProgramWatch:
    """Installs the hooks that report a program's events, and knows its parameters and buffers.

    A root module is one that is called outside of every other module's call. Root modules are collected until
    ``watch_roots``, since the hooks slow each call of a module. From then on the calls of root modules are reported.
    """

    def __init__(self, listener: ProgramListener) -> None:
        """Creates a watch that reports to `listener`, without installing it."""
        self._listener = listener
        self._roots: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._optimizers: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._depth = 0
        self._call_hooks: list[Any] = []
        self._root_calls = RootCalls(listener.on_inputs, listener.on_outputs)
        self._hooks: list[Any] = []
        self._backward: _BackwardWatch | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the hooks are installed."""
        return self._backward is not None

    @property
    def is_alone(self) -> bool:
        """Whether no other watch is installed."""
        return all(watch.listener is self._listener for watch in _installed_watches())

    def install(self) -> None:
        """Installs all hooks."""
        variable = torch.autograd.variable.Variable
        self._backward = _BackwardWatch(variable._execution_engine, self._listener)
        variable._execution_engine = self._backward
        self._hooks = [
            _optimizers.register_optimizer_step_pre_hook(self._optimizer_begins),
            _optimizers.register_optimizer_step_post_hook(self._optimizer_ends),
        ]
        self.watch_calls()

    def watch_calls(self) -> None:
        """Collects root modules from now on, outside of all calls."""
        self._forget_calls()
        self._depth = 0
        self._call_hooks = [
            _modules.register_module_forward_pre_hook(self._call_begins),
            _modules.register_module_forward_hook(self._call_ends, always_call=True),
        ]

    def watch_roots(self) -> None:
        """Watches the calls of the root modules that are known, and of no other module."""
        self._forget_calls()
        self._root_calls.install(self.roots())

    def remove(self) -> None:
        """Removes all hooks."""
        self._forget_calls()
        self._root_calls.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        if self._backward is not None:
            _remove_backward_watch(self._backward)
            self._backward = None

    def roots(self) -> list[torch.nn.Module]:
        """Returns the root modules."""
        return list(self._roots)

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Returns the optimizers that have made a step."""
        found = [reference() for reference in self._optimizers.values()]
        return [optimizer for optimizer in found if optimizer is not None]

    def has_optimizer(self, number: int) -> bool:
        """Returns True while the optimizer of that number exists."""
        reference = self._optimizers.get(number)
        return reference is not None and reference() is not None

    def parameters(self) -> list[torch.Tensor]:
        """Returns the parameters of the optimizers and of the root modules, frozen ones too, each once."""
        return [_local(tensor) for tensor in self._parameters()]

    def gradients(self) -> list[torch.Tensor]:
        """Returns the gradients that these parameters have now."""
        return [_local(tensor.grad) for tensor in self._parameters() if tensor.grad is not None]

    def buffers(self) -> list[torch.Tensor]:
        """Returns the buffers of the root modules, each once."""
        found: dict[int, torch.Tensor] = {}
        for root in self.roots():
            for buffer in root.buffers():
                found.setdefault(id(buffer), buffer)
        return [_local(tensor) for tensor in found.values() if _is_known(tensor)]

    def optimizer_states(self) -> list[torch.Tensor] | None:
        """Returns the tensors that the optimizers keep from step to step; None if there are no optimizers."""
        optimizers = self.optimizers()
        if not optimizers:
            return None
        states = [tensor for optimizer in optimizers for tensor in tensors_of(optimizer.state)]
        return [inner for state in states for inner in _wrapped_in(state)]

    def _parameters(self) -> list[torch.Tensor]:
        found: dict[int, torch.Tensor] = {}
        for root in self.roots():
            for parameter in root.parameters():
                found.setdefault(id(parameter), parameter)
        for optimizer in self.optimizers():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    found.setdefault(id(parameter), parameter)
        return [tensor for tensor in found.values() if _is_known(tensor)]

    def _forget_calls(self) -> None:
        for hook in self._call_hooks:
            hook.remove()
        self._call_hooks.clear()

    def _optimizer_begins(self, *_: Any) -> None:
        self._listener.on_optimizer_begin()

    def _optimizer_ends(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._listener.on_optimizer_end(self._number_of(optimizer))

    def _number_of(self, optimizer: torch.optim.Optimizer) -> int:
        for number, reference in self._optimizers.items():
            if reference() is optimizer:
                return number
        number = len(self._optimizers)
        self._optimizers[number] = weakref.ref(optimizer)
        return number

    def _call_begins(self, module: torch.nn.Module, _: Any) -> None:
        if self._depth == 0:
            self._roots.add(module)
        self._depth += 1

    def _call_ends(self, *_: Any) -> None:
        self._depth -= 1


def _is_known(tensor: torch.Tensor) -> bool:
    """Returns True for tensors with a storage: lazy parameters have none yet."""
    return not isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)


def _wrapped_in(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yields the tensors that a tensor of another class wraps, as of 8-bit states; else the tensor itself."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()
    for name in names:
        yield from _wrapped_in(getattr(tensor, name))


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the part of a distributed tensor (DTensor) that is on this rank, which has the storage."""
    local: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return local
