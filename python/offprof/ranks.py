"""A process that is one rank of many: where it is among them."""

from __future__ import annotations

import os
from dataclasses import dataclass


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

    def nodes_of(self, ranks: list[int]) -> int:
        """Returns the number of nodes that these ranks are on."""
        return len({rank // self.ranks_per_node for rank in ranks})


def place_from_environment() -> RankPlace | None:
    """Returns the place that `torchrun`, or `offprof exec --world-size`, tells in environment variables.

    Returns None in a process that is no rank, or whose variables are no numbers.
    """
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        ranks_per_node = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    except (KeyError, ValueError):
        return None
    if not 0 <= rank < world_size or ranks_per_node <= 0:
        return None
    return RankPlace(rank, world_size, ranks_per_node)
