"""Finds the parameters that FSDP and DeepSpeed gather around their uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .import_hooks import after_import

# The modules that gather parameters. FSDP frees their storage after the forward of their module, and fills it again
# before the backward, while graphs hold it. ZeRO-3 makes another storage for the backward. No public interface tells
# about it.
_FSDP2 = "torch.distributed.fsdp._fully_shard._fsdp_param"
_FSDP1 = "torch.distributed.fsdp._flat_param"
_ZERO3 = "deepspeed.runtime.zero.partitioned_param_coordinator"


def report_gathered_parameters(report: Callable[[Any], None]) -> None:
    """Calls `report` with each parameter that is gathered in this process, before the module uses it."""
    after_import(_FSDP2, functools.partial(_wrap_fsdp2, report))
    after_import(_FSDP1, functools.partial(_wrap_fsdp1, report))
    after_import(_ZERO3, functools.partial(_wrap_zero3, report))


def _wrap_fsdp2(report: Callable[[Any], None], module: ModuleType) -> None:
    gather = module.FSDPParam.init_unsharded_param

    @functools.wraps(gather)
    def gather_and_report(self: Any) -> None:
        gather(self)
        parameter = self._unsharded_param
        report(getattr(parameter, "_local_tensor", parameter))

    module.FSDPParam.init_unsharded_param = gather_and_report


def _wrap_fsdp1(report: Callable[[Any], None], module: ModuleType) -> None:
    allocate = module._alloc_storage  # of flat parameters: gathered, or cast to the type of the forward

    @functools.wraps(allocate)
    def allocate_and_report(parameters: Any, size: Any) -> None:
        allocate(parameters, size)
        report(parameters)

    module._alloc_storage = allocate_and_report  # type: ignore[attr-defined]


def _wrap_zero3(report: Callable[[Any], None], module: ModuleType) -> None:
    fetch = module.PartitionedParameterCoordinator.fetch_sub_module

    @functools.wraps(fetch)
    def fetch_and_report(self: Any, current_submodule: Any, *args: Any, **kwargs: Any) -> Any:
        result = fetch(self, current_submodule, *args, **kwargs)
        for parameter in module.iter_params(current_submodule, recurse=True):
            if parameter.numel():  # gathered: of others, only the part of this rank has memory
                report(parameter)
        return result

    module.PartitionedParameterCoordinator.fetch_sub_module = fetch_and_report
