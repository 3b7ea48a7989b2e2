"""A process that is one rank of many: where it is among them."""

from __future__ import annotations

import atexit
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .virtual_gpu import VirtualGpu

USUAL_RANKS_PER_NODE = 8


@dataclass(frozen=True)
class RankPlace:
    """Place of a rank in its job.

    Attributes:
        rank: number of the rank, from 0.
        world_size: number of ranks.
        ranks_per_node: number of ranks, and so of devices, on each node.
    """

    rank: int
    world_size: int
    ranks_per_node: int

    @property
    def local_rank(self) -> int:
        """Number of the rank, and of its device, on its node."""
        return self.rank % self.ranks_per_node

    def nodes_of(self, ranks: list[int]) -> int:
        """Returns the number of nodes that these ranks are on."""
        return len({rank // self.ranks_per_node for rank in ranks})


def place_from_environment() -> RankPlace | None:
    """Returns the place that `torchrun`, or `offprof exec --world-size`, tells in environment variables.

    Returns None in a process that is no rank, or whose variables are no numbers. A launcher that does not tell how many
    ranks a node has is assumed to start at most USUAL_RANKS_PER_NODE there.
    """
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        ranks_per_node = int(os.environ.get("LOCAL_WORLD_SIZE", min(world_size, USUAL_RANKS_PER_NODE)))
    except (KeyError, ValueError):
        return None
    if not 0 <= rank < world_size or ranks_per_node <= 0:
        return None
    return RankPlace(rank, world_size, ranks_per_node)


def connect_ranks(gpu: VirtualGpu, place: RankPlace, said: Path, is_alone: bool, ends_by_itself: bool = True) -> None:
    """Prepares `torch.distributed` of a process that is one rank of many.

    Args:
        gpu: the virtual GPU of this process.
        place: the rank.
        said: folder for what ranks tell each other.
        is_alone: whether the other ranks do not run at the same time.
        ends_by_itself: whether the program runs to its end. Then the ranks compare how many collectives they called.
    """
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        return
    atexit.register(_leave_groups, distributed, gpu, ends_by_itself)
    if is_alone:
        importlib.import_module("offprof.lone_rank").run_alone(gpu, place, said)
    else:
        importlib.import_module("offprof.peer_ranks").talk_to_peers(gpu, place, said)


def when_joining_a_job(devices: int, become_rank: Callable[[RankPlace], None]) -> None:
    """Calls `become_rank` when this process, which no launcher made a rank, becomes one of several: a process that the
    program itself starts, as by `torch.multiprocessing.spawn`.

    Args:
        devices: number of devices of the node.
        become_rank: called once, before the process group of the job is made.
    """
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        return
    begin = distributed.init_process_group
    parameters = inspect.signature(begin)
    is_rank = False

    @functools.wraps(begin)
    def become_rank_and_begin(*arguments: Any, **options: Any) -> Any:
        nonlocal is_rank
        given = parameters.bind(*arguments, **options).arguments
        rank, world_size = _told(given, "rank"), _told(given, "world_size")
        if not is_rank and 0 <= rank < world_size and world_size > 1:
            is_rank = True
            become_rank(RankPlace(rank, world_size, devices))
        return begin(*arguments, **options)

    for module in (distributed, distributed.distributed_c10d):
        vars(module)["init_process_group"] = become_rank_and_begin


def _told(arguments: dict[str, Any], name: str) -> int:
    """Returns the number that the program gives to init_process_group, or else in the environment; -1: none."""
    number = arguments.get(name, -1)
    if number != -1:
        return int(number)
    try:
        return int(os.environ[name.upper()])
    except (KeyError, ValueError):
        return -1


def _leave_groups(distributed: ModuleType, gpu: VirtualGpu, ends_by_itself: bool) -> None:
    """Destroys the process groups of a program that ends without doing so.

    Else their watchdog threads use objects of PyTorch that the end of the process destroys, and may print a crash.
    """
    if not distributed.is_initialized():
        return
    has_failed = hasattr(sys, "last_value")
    if has_failed or not ends_by_itself:
        gpu.stop_exchange()
    try:
        distributed.destroy_process_group()
    except Exception as error:
        if not has_failed:  # else the program's own error has been printed
            gpu.note(str(error).rpartition("Last error:\n")[2])
