"""Activation checkpointing of a program's modules, without a change of the program: ``offprof run --checkpoint``."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as _modules
from torch.utils.checkpoint import checkpoint

from .errors import InputError

# Number of paths that an error names.
_PATHS_NAMED = 12


class Checkpointing:
    """Checkpoints the modules whose paths match patterns, from their first call on.

    A path is the one below the root module, the outermost one that is called: ``blocks.0``. Patterns are those of
    fnmatch, so ``*`` matches dots too; of nested modules that match, the outermost one is checkpointed. A checkpointed
    module runs in ``torch.utils.checkpoint.checkpoint(use_reentrant=False)`` where gradients are enabled.
    """

    def __init__(self, patterns: list[str], add_note: Callable[[str], None]) -> None:
        """Takes the patterns; `install` begins to look for the modules. `add_note` gets notes on what was done."""
        self._patterns = patterns
        self._add_note = add_note
        self._unmatched = set(patterns)
        self._known: set[int] = set()  # ids of modules of the roots, which the program holds
        self._paths: list[str] = []
        self._hook: Any = None

    def install(self) -> None:
        """Checkpoints the modules below each root module that is called from now on, if there are patterns."""
        if self._patterns:
            self._hook = _modules.register_module_forward_pre_hook(self._call_begins)

    def close(self) -> None:
        """Stops looking for modules: a step has used all of them.

        Raises InputError if a pattern has matched no module.
        """
        if self._hook is None:
            return
        self._hook.remove()
        self._hook = None
        for pattern in self._patterns:
            if pattern in self._unmatched:
                more = ", ..." if len(self._paths) > _PATHS_NAMED else ""
                named = ", ".join(self._paths[:_PATHS_NAMED]) + more
                raise InputError(
                    f"checkpoint: {pattern!r} matches no module of the program",
                    f"Its modules are {named}" if named else "It calls no module that has submodules.",
                )

    def _call_begins(self, module: torch.nn.Module, _: Any) -> None:
        if id(module) in self._known:
            return
        self._switch_cache_off(module)
        outermost: str | None = None
        for path, inner in module.named_modules():
            self._known.add(id(inner))
            if not path:
                continue
            self._paths.append(path)
            matching = [pattern for pattern in self._patterns if fnmatch.fnmatchcase(path, pattern)]
            self._unmatched.difference_update(matching)
            is_inside = outermost is not None and path.startswith(outermost + ".")
            if matching and not is_inside:
                outermost = path
                inner.forward = _checkpointed(inner.forward)

    def _switch_cache_off(self, root: torch.nn.Module) -> None:
        """Switches off the cache of keys and values of models of transformers, as their own checkpointing does.

        A layer that runs again would find its keys in the cache twice.
        """
        configs = {id(inner.config): inner.config for inner in root.modules() if hasattr(inner, "config")}
        cached = [config for config in configs.values() if getattr(config, "use_cache", False)]
        for config in cached:
            config.use_cache = False
        if cached:
            self._add_note(
                "the model's config.use_cache was set to False, since a layer that is recomputed would find its keys "
                "in the cache twice: set it where you train with checkpointed modules"
            )


def _checkpointed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a forward that saves its arguments alone, and runs again in backward."""

    @functools.wraps(forward)
    def run(*arguments: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*arguments, **named)
        return checkpoint(forward, *arguments, use_reentrant=False, **named)

    return run
