"""Collectives of Python objects, on the virtual GPU.

PyTorch pickles the objects and sends the bytes through tensors of the GPU, whose contents do not exist
on a virtual one. Here the bytes take another way: a store, or files. Imported after torch.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections import defaultdict
from typing import Any, Protocol

import torch.distributed as dist
from torch.distributed import distributed_c10d


class Voices(Protocol):
    """The way by which ranks tell each other bytes. Each key is said once."""

    @property
    def is_alone(self) -> bool:
        """True if only ranks that ran before can be heard."""

    def say(self, key: str, value: bytes) -> None:
        """Says bytes, which other ranks hear under the key."""

    def hear(self, key: str, rank: int) -> bytes:
        """Returns what that rank says under the key, and waits for it. Raises RuntimeError if it cannot be known."""


class _ObjectCollectives:
    """The collectives of objects, as `torch.distributed` has them."""

    def __init__(self, voices: Voices) -> None:
        self._voices = voices
        # Ranks call a group's collectives in the same order, and so agree on the numbers of the calls.
        self._numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

    def broadcast_object_list(
        self,
        object_list: list[Any],
        src: int | None = None,
        group: Any = None,
        device: Any = None,
        group_src: int | None = None,
    ) -> None:
        """See torch.distributed."""
        del device
        group = _group_of(group)
        source = _global_rank(group, src, group_src)
        object_list[:] = self._shared(group, "broadcast", source, object_list)

    def scatter_object_list(
        self,
        scatter_object_output_list: list[Any],
        scatter_object_input_list: list[Any] | None = None,
        src: int | None = None,
        group: Any = None,
        group_src: int | None = None,
    ) -> None:
        """See torch.distributed."""
        group = _group_of(group)
        source = _global_rank(group, src, group_src)
        objects = self._shared(group, "scatter", source, scatter_object_input_list)
        scatter_object_output_list[0] = objects[dist.get_rank(group)]

    def all_gather_object(self, object_list: list[Any], obj: Any, group: Any = None) -> None:
        """See torch.distributed."""
        group = _group_of(group)
        object_list[:] = self._gathered(group, "all_gather", obj)

    def gather_object(
        self,
        obj: Any,
        object_gather_list: list[Any] | None = None,
        dst: int | None = None,
        group: Any = None,
        group_dst: int | None = None,
    ) -> None:
        """See torch.distributed."""
        group = _group_of(group)
        target = _global_rank(group, dst, group_dst)
        gathered = self._gathered(group, "gather", obj, hears=target == dist.get_rank())
        if object_gather_list is not None and gathered:
            object_gather_list[:] = gathered

    def send_object_list(
        self,
        object_list: list[Any],
        dst: int | None = None,
        group: Any = None,
        device: Any = None,
        group_dst: int | None = None,
        use_batch: bool = False,
    ) -> None:
        """See torch.distributed."""
        del device, use_batch
        group = _group_of(group)
        target = _global_rank(group, dst, group_dst)
        self._voices.say(self._key(group, f"send-{dist.get_rank()}-{target}"), pickle.dumps(object_list))

    def recv_object_list(
        self,
        object_list: list[Any],
        src: int | None = None,
        group: Any = None,
        device: Any = None,
        group_src: int | None = None,
        use_batch: bool = False,
    ) -> int:
        """See torch.distributed."""
        del device, use_batch
        group = _group_of(group)
        if src is None and group_src is None:
            raise RuntimeError("on a virtual GPU recv_object_list needs the rank that sends: src=RANK")
        source = _global_rank(group, src, group_src)
        key = self._key(group, f"send-{source}-{dist.get_rank()}")
        object_list[:] = pickle.loads(self._voices.hear(key, source))
        return source

    def _shared(self, group: Any, name: str, source: int, objects: list[Any] | None) -> list[Any]:
        """Returns the objects of the source, which `objects` are there."""
        key = self._key(group, name)
        if source == dist.get_rank():
            self._voices.say(key, pickle.dumps(objects))
            return list(objects or [])
        shared: list[Any] = pickle.loads(self._voices.hear(key, source))
        return shared

    def _gathered(self, group: Any, name: str, obj: Any, hears: bool = True) -> list[Any]:
        """Returns the objects of all ranks: for one rank alone, its own in place of all others."""
        key = self._key(group, name)
        own = pickle.dumps(obj)
        ranks = dist.get_process_group_ranks(group)
        if self._voices.is_alone:
            return [pickle.loads(own) for _ in ranks]
        self._voices.say(f"{key}-{dist.get_rank()}", own)
        return [pickle.loads(self._voices.hear(f"{key}-{rank}", rank)) for rank in ranks] if hears else []

    def _key(self, group: Any, name: str) -> str:
        """Returns the key of the next call of that name in the group."""
        ranks = "-".join(map(str, dist.get_process_group_ranks(group)[:2]))
        about = f"{distributed_c10d._get_process_group_name(group)}-{ranks}-{name}"
        return f"{about}-{next(self._numbers[about])}"


def _group_of(group: Any) -> Any:
    return distributed_c10d._get_default_group() if group is None else group


def _global_rank(group: Any, rank: int | None, group_rank: int | None) -> int:
    """Returns the global rank that is given as such or by its rank in the group; by default that of rank 0."""
    if rank is not None:
        return rank
    member: int = dist.get_global_rank(group, group_rank or 0)
    return member


def carry_objects(voices: Voices) -> None:
    """Replaces the collectives of objects in `torch.distributed` of this process."""
    collectives = _ObjectCollectives(voices)
    for name in (
        "broadcast_object_list",
        "scatter_object_list",
        "all_gather_object",
        "gather_object",
        "send_object_list",
        "recv_object_list",
    ):
        original = getattr(distributed_c10d, name)
        replacement = _for_members(original, getattr(collectives, name))
        setattr(distributed_c10d, name, replacement)
        setattr(dist, name, replacement)


def _for_members(original: Any, replacement: Any) -> Any:
    """Returns the replacement for a group that this rank is in and that uses the GPU, else the original."""

    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        groups = [value for value in (*arguments, *options.values()) if value is dist.GroupMember.NON_GROUP_MEMBER]
        return (original if groups else replacement)(*arguments, **options)

    return call
