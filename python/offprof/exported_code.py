"""Applies Python code of ``offprof export`` to a program, without a change of the program: ``offprof run --apply``."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.modules import module as _modules

from .errors import InputError

# Functions of exported code, in the order in which they are called. A function with a parameter wraps modules of the
# model that it is given; one without returns a context for forward and loss.
FUNCTIONS = ("checkpoint_selectively", "checkpoint_modules", "offload_activations")


class ExportedCode:
    """Calls the functions of exported code with the first root module that the program calls for training.

    A context is entered where a root module is called with gradients enabled, and left where the next backward pass
    begins, so that it holds forward and loss.
    """

    def __init__(self, path: str) -> None:
        """Reads the code of a file; an empty path means none.

        Raises InputError if the file cannot be read or run, or has none of `FUNCTIONS`.
        """
        self._path = path
        functions = _functions_of(path) if path else []
        self._wrappers = [function for function in functions if inspect.signature(function).parameters]
        self._contexts = [function for function in functions if function not in self._wrappers]
        self._entered = ExitStack()
        self._has_entered = False
        self._hook: Any = None

    def install(self) -> None:
        """Applies the code from the next call of a root module on, if there is code."""
        if self._wrappers or self._contexts:
            self._hook = _modules.register_module_forward_pre_hook(self._call_begins)

    def leave(self) -> None:
        """Leaves the contexts: a backward pass begins."""
        self._has_entered = False
        self._entered.close()

    def _call_begins(self, module: torch.nn.Module, _: Any) -> None:
        if self._has_entered or not torch.is_grad_enabled() or _is_backward():
            return
        for wrap in self._wrappers:
            self._call(wrap, module)
        self._wrappers.clear()
        if not self._contexts:
            self._hook.remove()
        self._has_entered = True
        for context in self._contexts:
            self._entered.enter_context(self._call(context))

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise InputError(
                f"{self._path}: {function.__name__} raised {type(error).__name__}: {error}",
                "Export the policy for a trace of this program.",
            ) from error


def _is_backward() -> bool:
    """Tells whether autograd calls: a checkpointed module that is called there belongs to no forward of its own."""
    task: int = torch._C._current_graph_task_id()
    return task != -1


def _functions_of(path: str) -> list[Any]:
    names: dict[str, Any] = {"__name__": "exported"}
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), names)
    except (OSError, SyntaxError, ImportError, AttributeError) as error:
        raise InputError(
            f"{path}: the exported code cannot be used: {error}", "Write it with offprof export --to pytorch -o FILE."
        ) from error
    functions = [names[name] for name in FUNCTIONS if callable(names.get(name))]
    if not functions:
        raise InputError(
            f"{path}: the file has none of the functions {', '.join(FUNCTIONS)}",
            "Write it with offprof export --to pytorch -o FILE.",
        )
    return functions
