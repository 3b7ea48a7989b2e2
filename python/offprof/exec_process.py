"""A Python process of `offprof exec`, from its first `import torch` on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import OffprofError
from .process_report import ProcessReport, report_problem
from .ranks import RankPlace, connect_ranks, place_from_environment, when_joining_a_job
from .virtual_gpu import open_virtual_gpu, opened_virtual_gpu

# Set by `offprof exec` (cli/commands/exec_command.cpp): a JSON object.
SETTINGS_VARIABLE = "OFFPROF_EXEC"


def import_torch(execute: Callable[[ModuleType], None], torch: ModuleType) -> None:
    """Opens the virtual GPU as `offprof exec` asks, and executes the module torch.

    Raises OffprofError, after reporting it to `offprof exec`, if the virtual GPU cannot be opened.
    """
    settings: dict[str, Any] = json.loads(os.environ[SETTINGS_VARIABLE])
    report_folder = Path(settings["reports"])
    place = place_from_environment()
    try:
        gpu = opened_virtual_gpu() or open_virtual_gpu(
            settings["profile"],
            memory_limit_bytes=settings["memory_limit_bytes"],
            devices=place.ranks_per_node if place is not None else settings["devices"],
            cluster=settings["cluster"],
            balanced_experts=settings["balanced_experts"],
            libraries=settings["libraries"],
        )
    except OffprofError as error:
        report_problem(report_folder, f"{error.message} ({error.hint})" if error.hint else error.message)
        raise
    execute(torch)
    report = ProcessReport(gpu, report_folder, place)
    said = Path(settings["said"])

    def become_rank(place: RankPlace) -> None:
        report.name_rank(place)
        connect_ranks(gpu, place, said, is_alone=False)

    report.watch(torch)
    if place is not None:
        connect_ranks(gpu, place, said, is_alone=settings["is_alone"])
    else:
        when_joining_a_job(settings["devices"], become_rank)
