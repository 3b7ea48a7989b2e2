"""A process that is one rank of many: where it is among them."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

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


def connect_ranks(gpu: VirtualGpu, place: RankPlace, said: Path, is_alone: bool) -> None:
    """Prepares `torch.distributed` of a process that is one rank of many.

    Args:
        gpu: the virtual GPU of this process.
        place: the rank.
        said: folder for what ranks tell each other.
        is_alone: whether the other ranks do not run at the same time.
    """
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        return
    atexit.register(_leave_groups, distributed)
    if is_alone:
        importlib.import_module("offprof.lone_rank").run_alone(gpu, place, said)
    else:
        importlib.import_module("offprof.peer_ranks").talk_to_peers(gpu, place, said)


def _leave_groups(distributed: ModuleType) -> None:
    """Destroys the process groups of a program that ends without doing so.

    Else their watchdog threads use objects of PyTorch that the end of the process destroys, and may print a crash.
    """
    if distributed.is_initialized():
        with contextlib.suppress(Exception):  # the program's own error has been printed
            distributed.destroy_process_group()
