"""Calls functions when modules are imported for the first time."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

AfterImport = Callable[[ModuleType], None]


class _Finder:
    """Finder that finds nothing by itself; it wraps the loaders of the modules that it waits for."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[AfterImport]] = {}

    def add(self, name: str, function: AfterImport) -> None:
        self._waiting.setdefault(name, []).append(function)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        functions = self._waiting.pop(name, None)  # the search below comes here again
        if functions is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            self._waiting[name] = functions
            return spec
        execute = spec.loader.exec_module
        # The loader stays what it is, for whoever asks it for resources or source code.
        spec.loader.exec_module = functools.partial(  # type: ignore[method-assign]
            _execute, execute, functions
        )
        return spec


def _execute(execute: Callable[[ModuleType], None], functions: list[AfterImport], module: ModuleType) -> None:
    execute(module)
    for function in functions:
        function(module)


_finder = _Finder()


def after_import(name: str, function: AfterImport) -> None:
    """Calls `function` with the module of that name once it is imported; at once if it is already.

    Exceptions of `function` are raised by the `import` statement.
    """
    module = sys.modules.get(name)
    if module is not None:
        function(module)
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.add(name, function)
