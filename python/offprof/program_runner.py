"""Runs a program as Python would, and finds the function whose calls are its steps."""

from __future__ import annotations

import ast
import functools
import importlib.util
import io
import os
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

from .errors import InputError
from .import_hooks import after_import

_MARK = "__offprof_step__"  # name of the decorator in a transformed script


def run_program(
    program: str, arguments: list[str], is_module: bool, main_step: str, after_step: Callable[[], None]
) -> None:
    """Runs a script, or a module as ``python -m`` does: with its arguments, as ``__main__``.

    Args:
        program: path of the script, or name of the module.
        arguments: arguments of the program, without its name.
        is_module: the program is a module.
        main_step: function of a script, `name` or `Class.name`, whose calls are steps; empty: none.
        after_step: called after each call of `main_step`.

    Raises InputError if there is no such module.
    """
    sys.argv = [program, *arguments]
    if is_module:
        sys.path.insert(0, os.getcwd())
        _require_module(program)
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
    if main_step:
        _run_with_steps(program, main_step, after_step)
    else:
        runpy.run_path(program, run_name="__main__")


def _require_module(name: str) -> None:
    """Raises InputError unless Python finds the module, and as a package it can be run. Imports its packages."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a package of the module lacks something else
        spec = None
    if spec is None:
        raise InputError(
            f"there is no module {name}", "Run it from the folder from which `python -m` finds it, or set PYTHONPATH."
        )


def watch_steps_in_module(module: str, name: str, after_step: Callable[[], None]) -> None:
    """Calls `after_step` after each call of a function, `name` or `Class.name`, of a module that is imported."""

    def wrap(imported: types.ModuleType) -> None:
        *owners, last = name.split(".")
        owner: Any = imported
        try:
            for part in owners:
                owner = getattr(owner, part)
            setattr(owner, last, _step(getattr(owner, last), after_step))
        except AttributeError:
            raise _no_function(name, module) from None

    after_import(module, wrap)


def _no_function(name: str, where: str) -> InputError:
    return InputError(
        f"--step-function: there is no function {name} in {where}",
        "Write MODULE:NAME, or __main__:NAME for a function of the script itself.",
    )


def _step(function: Callable[..., Any], after_step: Callable[[], None]) -> Callable[..., Any]:
    """Returns the function with a call of `after_step` at its end."""

    @functools.wraps(function)
    def step(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        after_step()
        return result

    return step


def _run_with_steps(script: str, name: str, after_step: Callable[[], None]) -> None:
    """Runs a script in which a function is decorated. Its lines stay where they are."""
    with io.open_code(os.path.abspath(script)) as file:
        tree = ast.parse(file.read(), script)
    function = _find_function(tree, name)
    if function is None:
        raise _no_function(name, script)
    mark = ast.Name(_MARK, ast.Load())
    ast.copy_location(mark, function)
    function.decorator_list.insert(0, mark)
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__dict__[_MARK] = functools.partial(_step, after_step=after_step)
    sys.modules["__main__"] = main
    exec(compile(tree, script, "exec"), main.__dict__)


def _find_function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    *classes, last = name.split(".")
    body = tree.body
    for class_name in classes:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == class_name]
        if not found:
            return None
        body = found[-1].body
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == last]
    return functions[-1] if functions else None
