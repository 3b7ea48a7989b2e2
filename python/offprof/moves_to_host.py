"""Tells copies to the host that move data there from those by which a program reads values.

What saved-tensor hooks copy, such as those of `save_on_cpu` and of TRL, comes back to the device. With parameters on the CPU
(`CPUOffloadPolicy`), FSDP2 copies its shards of them there, and gradients for an optimizer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .import_hooks import after_import

Note = Callable[[bool], None]

_HOOKS = "torch.autograd.graph"
_FSDP2_GRADIENTS = "torch.distributed.fsdp._fully_shard._fsdp_collectives"
_FSDP2_PARAMETERS = "torch.distributed.fsdp._fully_shard._fsdp_param"


def tell_moves(note: Note) -> None:
    """Calls `note` with True when this process begins to move data to the host, and with False when it ends."""
    after_import(_HOOKS, functools.partial(_wrap_hooks, note))
    after_import(_FSDP2_GRADIENTS, functools.partial(_wrap_gradients, note))
    after_import(_FSDP2_PARAMETERS, functools.partial(_wrap_parameters, note))


def _wrap_hooks(note: Note, module: ModuleType) -> None:
    hooks = module.saved_tensors_hooks
    init = hooks.__init__

    @functools.wraps(init)
    def init_moving(self: Any, pack_hook: Any, unpack_hook: Any) -> None:
        # torch.compile looks into hooks that are modules.
        init(self, pack_hook if hasattr(pack_hook, "graph") else _moving(note, pack_hook), unpack_hook)

    hooks.__init__ = init_moving


def _wrap_gradients(note: Note, module: ModuleType) -> None:
    module.foreach_reduce = _moving(note, module.foreach_reduce)  # type: ignore[attr-defined]


def _wrap_parameters(note: Note, module: ModuleType) -> None:
    module.FSDPParam._init_sharded_param = _moving(note, module.FSDPParam._init_sharded_param)


def _moving(note: Note, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with its copies to the host noted as moves."""

    @functools.wraps(function)
    def move(*args: Any, **kwargs: Any) -> Any:
        note(True)
        try:
            return function(*args, **kwargs)
        finally:
            note(False)

    return move
