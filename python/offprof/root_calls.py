"""Reports the tensors that a program passes to its root modules, and those that these return."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

Report = Callable[[list[torch.Tensor]], None]


class RootCalls:
    """Hooks on the calls of root modules.

    Inputs are the tensors among the arguments that no operator with a gradient made. Modules that are compiled as a
    whole are left out: hooks would have them compiled again.
    """

    def __init__(self, on_inputs: Report, on_outputs: Report) -> None:
        """Reports the inputs of each call before it, and the tensors that it returned after it."""
        self._before = _ModuleHook(lambda _, args, kwargs: on_inputs(inputs_of((args, kwargs))))
        self._after = _ModuleHook(lambda _, args, result: on_outputs(list(tensors_of(result))))
        self._handles: list[Any] = []

    def install(self, roots: list[torch.nn.Module]) -> None:
        """Hooks the modules, once."""
        if self._handles:
            return
        for root in roots:
            if root._compiled_call_impl is None:
                self._handles.append(root.register_forward_pre_hook(self._before, with_kwargs=True))
                self._handles.append(root.register_forward_hook(self._after))

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


class _ModuleHook:
    """A hook that does not go with its module: a copy of the module keeps it, a file with the module has none."""

    def __init__(self, call: Callable[..., None]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> None:
        if not torch.compiler.is_compiling():
            self._call(*args)

    def __deepcopy__(self, _: Any) -> _ModuleHook:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled, it is a function that takes all arguments and does nothing, and needs no offprof.
        return getattr, (contextlib.nullcontext(), "__exit__")


def inputs_of(value: Any) -> list[torch.Tensor]:
    """Returns the tensors in a value that have no history."""
    return [tensor for tensor in tensors_of(value) if tensor.grad_fn is None]


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors in a value: itself, or in its lists, tuples and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)
