"""Collectives of Python objects, on the virtual GPU.

PyTorch pickles the objects and sends the bytes through tensors of the GPU, whose contents do not exist
on a virtual one. Here PyTorch's own functions run, so that sizes, memory and calls are theirs, and the objects
themselves take another way: a store, or files. Imported after torch.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from .virtual_gpu import VirtualGpu


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
    """What this rank gives to a collective of objects and gets from it.

    Each method is called with the arguments of PyTorch's function of the same name, by name. It says what this rank
    gives, and returns the pickled objects that the function unpickles on this rank, in order.
    """

    def __init__(self, voices: Voices) -> None:
        self._voices = voices
        # Ranks call a group's collectives in the same order, and so agree on the numbers of the calls.
        self._numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

    def broadcast_object_list(
        self, object_list: list[Any], src: int | None, group: Any, group_src: int | None
    ) -> list[bytes]:
        """All ranks but the source get its list."""
        source = _global_rank(group, src, group_src)
        shared = self._shared(self._key(group, "broadcast"), source, object_list)
        return [] if source == dist.get_rank() else shared

    def scatter_object_list(
        self, scatter_object_input_list: list[Any] | None, src: int | None, group: Any, group_src: int | None
    ) -> list[bytes]:
        """Each rank, the source too, gets its object of the source's list."""
        source = _global_rank(group, src, group_src)
        shared = self._shared(self._key(group, "scatter"), source, scatter_object_input_list or [])
        return shared[dist.get_rank(group) :][:1]

    def all_gather_object(self, obj: Any, group: Any) -> list[bytes]:
        """Each rank gets the objects of all."""
        return self._gathered(self._key(group, "all_gather"), group, obj)

    def gather_object(self, obj: Any, dst: int | None, group: Any, group_dst: int | None) -> list[bytes]:
        """The destination gets the objects of all ranks."""
        is_destination = _global_rank(group, dst, group_dst) == dist.get_rank()
        return self._gathered(self._key(group, "gather"), group, obj, is_destination)

    def send_object_list(
        self, object_list: list[Any], dst: int | None, group: Any, group_dst: int | None
    ) -> list[bytes]:
        """The sender gets nothing."""
        target = _global_rank(group, dst, group_dst)
        self._shared(self._key(group, f"send-{dist.get_rank()}-{target}"), dist.get_rank(), object_list)
        return []

    def recv_object_list(self, src: int | None, group: Any, group_src: int | None) -> list[bytes]:
        """The receiver gets the list of the sender."""
        source = _global_rank(group, src, group_src)
        return self._shared(self._key(group, f"send-{source}-{dist.get_rank()}"), source, [])

    def _shared(self, key: str, source: int, objects: list[Any]) -> list[bytes]:
        """Returns the source's objects, which are `objects` there."""
        if source != dist.get_rank():
            heard: list[bytes] = pickle.loads(self._voices.hear(key, source))
            return heard
        pickled = [pickle.dumps(an_object) for an_object in objects]
        self._voices.say(key, pickle.dumps(pickled))
        return pickled

    def _gathered(self, key: str, group: Any, obj: Any, hears: bool = True) -> list[bytes]:
        """Returns the objects of all ranks: for one rank alone, its own in place of all others."""
        own = pickle.dumps(obj)
        ranks = dist.get_process_group_ranks(group)
        if self._voices.is_alone:
            return [own] * len(ranks) if hears else []
        self._voices.say(f"{key}-{dist.get_rank()}", own)
        return [self._voices.hear(f"{key}-{rank}", rank) for rank in ranks] if hears else []

    def _key(self, group: Any, name: str) -> str:
        """Returns the key of the next call of that name in the group."""
        ranks = "-".join(map(str, dist.get_process_group_ranks(group)[:2]))
        about = f"{distributed_c10d._get_process_group_name(group)}-{ranks}-{name}"
        return f"{about}-{next(self._numbers[about])}"


def _global_rank(group: Any, rank: int | None, group_rank: int | None) -> int:
    """Returns the global rank that is given as such or by its rank in the group; by default that of rank 0."""
    if rank is not None:
        return rank
    member: int = dist.get_global_rank(group, group_rank or 0)
    return member


class _Received(threading.local):
    """Pickled objects that the collective in progress on this thread unpickles next."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []


# Parameters that name the list into which a collective puts what this rank gets.
_OUTPUTS = {
    "all_gather_object": "object_list",
    "broadcast_object_list": "object_list",
    "gather_object": "object_gather_list",
    "recv_object_list": "object_list",
    "scatter_object_list": "scatter_object_output_list",
    "send_object_list": None,
}


def carry_objects(gpu: VirtualGpu, voices: Voices) -> None:
    """Adapts the collectives of objects in `torch.distributed` of this process, which has that virtual GPU."""
    received = _Received()
    unpickle = distributed_c10d._tensor_to_object

    @functools.wraps(unpickle)
    def unpickle_received(tensor: Any, tensor_size: Any, group: Any) -> Any:
        if not received.objects:
            return unpickle(tensor, tensor_size, group)
        tensor.cpu()  # takes its time
        pickled = received.objects.pop(0)
        if int(tensor_size) < len(pickled):
            gpu.note("figures leave out memory of objects that ranks exchange, whose sizes are not known")
        return pickle.loads(pickled)

    distributed_c10d._tensor_to_object = unpickle_received
    collectives = _ObjectCollectives(voices)
    for name in _OUTPUTS:
        adapted = _adapted(gpu, received, getattr(distributed_c10d, name), getattr(collectives, name))
        setattr(distributed_c10d, name, adapted)
        setattr(dist, name, adapted)


def _adapted(
    gpu: VirtualGpu, received: _Received, original: Callable[..., Any], gives: Callable[..., list[bytes]]
) -> Callable[..., Any]:
    """Returns the collective, which unpickles what `gives` returns for its arguments."""
    signature, used = inspect.signature(original), inspect.signature(gives).parameters
    output = _OUTPUTS[original.__name__]

    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        given = bound.arguments
        if given["group"] is dist.GroupMember.NON_GROUP_MEMBER:
            return original(*arguments, **options)
        given["group"] = group = given["group"] or distributed_c10d._get_default_group()
        objects = gives(**{name: given[name] for name in used})
        device = given.get("device") or distributed_c10d._get_object_coll_device(group)
        if torch.device(device).type == "cpu":  # a rank alone has no peers that would bring anything there
            if objects and output is not None:
                given[output][: len(objects)] = map(pickle.loads, objects)
            return _global_rank(group, given["src"], given["group_src"]) if "src" in given else None
        received.objects = objects
        gpu.note_objects(True)
        try:
            return original(*arguments, **options)
        finally:
            gpu.note_objects(False)
            received.objects = []

    return call
