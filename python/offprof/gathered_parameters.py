"""Finds the parameters that FSDP2 gathers around their uses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .import_hooks import after_import

# The module of FSDP2 that holds a gathered parameter. FSDP2 frees its storage after the forward of its module, and
# fills it again before the backward, while graphs hold it. No public interface of PyTorch tells about it.
_MODULE = "torch.distributed.fsdp._fully_shard._fsdp_param"


def report_gathered_parameters(report: Callable[[Any], None]) -> None:
    """Calls `report` with each parameter that FSDP2 gathers in this process, before the module uses it."""
    after_import(_MODULE, functools.partial(_wrap, report))


def _wrap(report: Callable[[Any], None], module: ModuleType) -> None:
    gather = module.FSDPParam.init_unsharded_param

    @functools.wraps(gather)
    def gather_and_report(self: Any) -> None:
        gather(self)
        parameter = self._unsharded_param
        report(getattr(parameter, "_local_tensor", parameter))

    module.FSDPParam.init_unsharded_param = gather_and_report
