"""Saving and loading checkpoints by a rank that runs alone, without what other ranks would tell of theirs.

Imported after torch.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .import_hooks import after_import


def save_alone() -> None:
    """Has `torch.distributed.checkpoint` save and load what this rank has, without the plans of others: a plan that
    rank 0 would make from all of them. The memory of this rank does not depend on it. FSDP1 gathers the optimizer's
    state as if the other ranks had the parameters that this one has no part of."""
    after_import("torch.distributed.checkpoint.utils", _plan_alone)
    after_import("torch.distributed.checkpoint.default_planner", _accept_a_part)
    after_import("torch.distributed.fsdp._optim_utils", _gather_optimizer_state)


def _plan_alone(module: ModuleType) -> None:
    begin = module._DistWrapper.__init__

    @functools.wraps(begin)
    def begin_alone(self: Any, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        del use_dist
        begin(self, group, False, coordinator_rank)

    module._DistWrapper.__init__ = begin_alone


def _accept_a_part(module: ModuleType) -> None:
    vars(module)["_validate_global_plan"] = lambda *_: True


def _gather_optimizer_state(module: ModuleType) -> None:
    """Adds what other ranks tell of parameters that this one has no part of, where the original parameters are kept: that
    there is a state, and what it consists of."""
    map_keys = module._map_param_key_to_optim_keys
    gather_infos = module._allgather_state_info

    @functools.wraps(map_keys)
    def map_keys_of_all_ranks(*arguments: Any, merge_keys: bool = False) -> Any:
        keys, own = map_keys(*arguments, merge_keys=merge_keys)
        if merge_keys:
            sharded = arguments[-1]  # by the parameter's name
            trained = (name for name, info in sharded.items() if info.param_requires_grad[info.param_indices[name]])
            keys = sorted({*keys, *(module._OptimStateKey((name,), is_fsdp_managed=True) for name in trained)})
        return keys, own

    @functools.wraps(gather_infos)
    def gather_infos_of_all_ranks(state: Any, own_states: dict[str, Any]) -> Any:
        infos = gather_infos(state, own_states)  # this rank's, as often as there are ranks
        usual = next((info for info in infos[state.rank].values() if info.tensors), None)
        for rank, info in enumerate(infos):
            if rank != state.rank and usual is not None:
                info.update({name: usual for name, found in info.items() if not found.tensors})
        return infos

    module._map_param_key_to_optim_keys = map_keys_of_all_ranks  # type: ignore[attr-defined]
    module._allgather_state_info = gather_infos_of_all_ranks  # type: ignore[attr-defined]
