"""One rank alone: a process of a job of many ranks, without its peers.

PyTorch's own distributed code runs, over NCCL's stand-in, which waits for nobody. What is left is the
store, through which ranks tell each other how to connect: here a store that answers what other ranks
would have said. Imported after torch.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn
from urllib import parse

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup
from torch.distributed import distributed_c10d

from .code_locator import call_site
from .import_hooks import after_import
from .lone_saving import save_alone
from .object_collectives import carry_objects
from .ranks import RankPlace
from .virtual_gpu import VirtualGpu

# Size of NCCL's unique ids (nccl.h), through which the ranks of a communicator find each other.
_UNIQUE_ID_BYTES = 128
# Key of a unique id: the group's name, the device, and the number of the communicator, or two ranks of
# the group that send to each other (ProcessGroupNCCL).
_KEY_OF_UNIQUE_ID = re.compile(r"(?:^|/)(?P<group>[^/]*)//cuda//(?P<communicator>.+)")
_TWO_RANKS = re.compile(r"(\d+):(\d+)")
_GROUP_BEING_MADE = b"being made"  # key of a group whose color is not known beforehand: runtime/nccl.cpp
_RANK_WAITS = 75  # exit status: cli/plugin/rank_queue.h
_TIMEOUT = datetime.timedelta(minutes=5)  # nobody waits so long


class LoneStore(dist.Store):
    """A store that answers what other ranks would have put there: unique ids of communicators, and that
    all of them have come.

    Threads of ProcessGroupNCCL call it too. Keep a reference as long as the process uses the store.

    Attributes:
        ranks_being_connected: ranks of the group that is being made, which torch does not list yet.
    """

    def __init__(self, gpu: VirtualGpu, place: RankPlace) -> None:
        """Creates an empty store. `gpu` is told the sizes of groups."""
        super().__init__()
        self._gpu = gpu
        self._place = place
        self.ranks_being_connected: list[int] = []
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def set(self, key: str, value: str | bytes) -> None:
        """Stores a value."""
        stored = value.encode() if isinstance(value, str) else value
        with self._lock:
            self._values[key] = stored
        self._note_group(key, stored)

    def get(self, key: str) -> bytes:
        """Returns the stored value; the unique id that rank 0 of a group would have stored.

        Raises RuntimeError if only another rank knows the value.
        """
        with self._lock:
            value = self._values.get(key)
            if value is None and _KEY_OF_UNIQUE_ID.search(key):
                # The length is that of NCCL's ids, and each key has another value.
                value = key.encode()[-_UNIQUE_ID_BYTES:].rjust(_UNIQUE_ID_BYTES, b"\0")
                self._values[key] = value
        if value is None:
            raise RuntimeError(
                f"rank {self._place.rank} runs alone, and the value of {key!r} comes from another rank: "
                "run all ranks at once: offprof exec -- torchrun --nproc-per-node RANKS PROGRAM"
            )
        self._note_group(key, value)
        return value

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Returns `get` of each key."""
        return [self.get(key) for key in keys]

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter, as if all ranks had added the same."""
        with self._lock:
            value = int(self._values.get(key, b"0")) + amount * self._place.world_size
            self._values[key] = str(value).encode()
        return value

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Stores the desired value if the stored one is the expected one. Returns the stored value."""
        expected, desired = (
            value.encode() if isinstance(value, str) else value for value in (expected_value, desired_value)
        )
        with self._lock:
            if self._values.get(key, b"") == expected:
                self._values[key] = desired
            return self._values.get(key, expected)

    def wait(self, *arguments: Any) -> None:
        """Returns at once: the other ranks have come."""
        del arguments

    def check(self, keys: list[str]) -> bool:
        """Returns True if all keys were stored by this rank."""
        with self._lock:
            return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Removes a value. Returns True if there was one."""
        with self._lock:
            return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """Returns the number of values."""
        return len(self._values)

    def has_extended_api(self) -> bool:
        """Returns False: there are no queues."""
        return False

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Does nothing, since no call waits."""
        del timeout

    @property
    def timeout(self) -> datetime.timedelta:
        """The time after which calls would give up."""
        return _TIMEOUT

    def clone(self) -> LoneStore:
        """Returns this store, which threads may share."""
        return self

    def _note_group(self, key: str, value: bytes) -> None:
        """Tells the GPU which ranks a communicator connects, if the value is the communicator's id."""
        found = _KEY_OF_UNIQUE_ID.search(key)
        if found is None or len(value) != _UNIQUE_ID_BYTES:
            return
        ranks = _ranks_of_group(found["group"]) or self.ranks_being_connected
        pair = _TWO_RANKS.fullmatch(found["communicator"])
        if pair is not None and ranks:
            members = [int(member) for member in pair.groups()]
            if max(members) >= len(ranks):
                raise ValueError(
                    f"a send or receive names rank {max(members)}, but the ranks are 0 to {len(ranks) - 1}"
                )
            ranks = [ranks[member] for member in members]
        if ranks:
            self._gpu.note_group(value, len(ranks), self._place.nodes_of(ranks), key)


def _ranks_of_group(name: str) -> list[int]:
    """Returns the ranks of a process group in the order of the group; an empty list if there is none."""
    world = distributed_c10d._world
    for group, its_name in world.pg_names.items():
        if its_name == name:
            return sorted(world.pg_group_ranks.get(group, {}), key=world.pg_group_ranks[group].__getitem__)
    return []


def run_alone(gpu: VirtualGpu, place: RankPlace, said: Path) -> None:
    """Lets `torch.distributed` of this process go on without other ranks.

    Args:
        gpu: the virtual GPU of this process.
        place: the rank that this process is.
        said: folder for objects that ranks tell each other: ranks of the job that run later find them there.
    """
    # Its thread would call the store, which is Python, while Python ends.
    os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
    store = LoneStore(gpu, place)

    def rendezvous(url: str, **options: Any) -> Iterator[tuple[LoneStore, int, int]]:
        del options
        _check_place(place, url)
        yield store, place.rank, place.world_size

    def replace_rendezvous(module: ModuleType) -> None:
        for scheme in ("env", "tcp", "file"):
            module._rendezvous_handlers[scheme] = rendezvous

    after_import("torch.distributed.rendezvous", replace_rendezvous)
    distributed_c10d._process_group_color = _noting_color(gpu, place)
    dist.ProcessGroup.split_group = _noting_part(gpu, place)
    importlib.import_module("torch.testing._internal.distributed.fake_pg")  # registers the backend
    make_group = _noting_ranks(gpu, place, store, distributed_c10d._new_process_group_helper)
    distributed_c10d._new_process_group_helper = _without_gloo(make_group)
    gpu.exchange_with_peers(said, place.rank, place.world_size, 0, call_site)
    carry_objects(gpu, _Voices(place, said))
    distributed_c10d.monitored_barrier = dist.monitored_barrier = _do_not_wait  # gloo's, which `fake` does not have
    save_alone()
    _note_partners(said / f"partners-{place.rank}")


def _check_place(place: RankPlace, url: str) -> None:
    """Raises RuntimeError if the program makes this process another rank than this one: `url` says which."""
    told = {name: int(number) for name, number in parse.parse_qsl(parse.urlparse(url).query) if number != "-1"}
    rank, world_size = told.get("rank", place.rank), told.get("world_size", place.world_size)
    if (rank, world_size) == (place.rank, place.world_size):
        return
    raise RuntimeError(
        f"--world-size {place.world_size} runs rank {place.rank} alone, but the program makes this process rank {rank} of "
        f"{world_size}. If it starts its ranks itself: offprof exec --devices {world_size} -- COMMAND runs them all; else "
        "let it take RANK and WORLD_SIZE from the environment"
    )


def _do_not_wait(*_: object, **__: object) -> None:
    """Does nothing: the other ranks have come."""


def _note_partners(file: Path) -> None:
    """Writes the ranks that this one exchanges messages with to the file, one a line: stages of a pipeline, for
    example, which `--rank auto` runs next."""
    known: set[int] = set()

    def note(partner: int | None) -> None:
        if partner is not None and partner not in known:
            known.add(partner)
            file.write_text("".join(f"{rank}\n" for rank in sorted(known)))

    begin = distributed_c10d.P2POp.__init__

    @functools.wraps(begin)
    def begin_and_note(self: Any, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        note(self.peer)

    distributed_c10d.P2POp.__init__ = begin_and_note
    for name, keyword in (("send", "dst"), ("isend", "dst"), ("recv", "src"), ("irecv", "src")):
        function = _noting(getattr(distributed_c10d, name), keyword, note)
        setattr(distributed_c10d, name, function)
        setattr(dist, name, function)


def _noting(function: Callable[..., Any], keyword: str, note: Callable[[int | None], None]) -> Callable[..., Any]:
    """Returns the function, which also notes the rank that its second argument or that keyword names."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        note(arguments[1] if len(arguments) > 1 else options.get(keyword))
        return function(*arguments, **options)

    return call


def _noting_color(gpu: VirtualGpu, place: RankPlace) -> Callable[[list[int]], int]:
    """Returns the function that gives a group its color, which also tells the GPU the size of the group."""
    color_of = distributed_c10d._process_group_color

    def color(ranks: list[int]) -> int:
        value: int = color_of(ranks)
        gpu.note_group(str(value).encode(), len(ranks), place.nodes_of(list(ranks)))
        return value

    return color


def _noting_part(gpu: VirtualGpu, place: RankPlace) -> Callable[..., Any]:
    """Returns the method that splits a part off a process group, which first tells the GPU the size of the part: C++
    computes its color. `init_device_mesh` calls it if the job's group was made for a device.

    The `fake` backend, in place of gloo, cannot be split: the part gets one of its own."""
    split = dist.ProcessGroup.split_group
    cuda, cpu = torch.device("cuda"), torch.device("cpu")

    @functools.wraps(split)
    def split_off(whole: dist.ProcessGroup, ranks: list[int], *arguments: Any, **options: Any) -> Any:
        of_job = dist.get_process_group_ranks(whole)
        gpu.note_group(_GROUP_BEING_MADE, len(ranks), place.nodes_of([of_job[rank] for rank in ranks]))
        if cpu not in whole._device_types:
            return split(whole, ranks, *arguments, **options)
        on_gpu = dist.ProcessGroup(distributed_c10d._get_default_store(), whole.rank(), whole.size())
        on_gpu._set_default_backend(dist.ProcessGroup.BackendType.NCCL)
        on_gpu._register_backend(cuda, dist.ProcessGroup.BackendType.NCCL, whole._get_backend(cuda))
        part = split(on_gpu, ranks, *arguments, **options)
        if part is not None:
            name, description = part.group_name, part.group_desc  # each backend keeps them
            fake = FakeProcessGroup._create_internal(part.rank(), part.size())
            part._register_backend(cpu, dist.ProcessGroup.BackendType.CUSTOM, fake)
            part._set_group_name(name)
            part._set_group_desc(description)
        return part

    return split_off


def _noting_ranks(
    gpu: VirtualGpu, place: RankPlace, store: LoneStore, make_group: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns the function that makes a process group, which first tells the GPU its size: PyTorch 2.15 computes the
    color of a part that it splits off where Python does not see it. The store needs the ranks of a group that is
    connected at once."""

    @functools.wraps(make_group)
    def make(group_size: int, group_rank: int, ranks: list[int], *arguments: Any, **options: Any) -> Any:
        store.ranks_being_connected = list(ranks) or list(range(place.world_size))
        gpu.note_group(_GROUP_BEING_MADE, group_size, place.nodes_of(store.ranks_being_connected))
        return make_group(group_size, group_rank, ranks, *arguments, **options)

    return make


def _without_gloo(make_group: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that makes a process group, with PyTorch's `fake` backend in place of gloo, which
    needs peers: its collectives give this rank's own values."""

    @functools.wraps(make_group)
    def make(group_size: int, group_rank: int, ranks: list[int], backend: Any, *arguments: Any, **options: Any) -> Any:
        name = str(backend)
        if name == distributed_c10d.Backend.UNDEFINED:
            name = "cpu:gloo,cuda:nccl"
        # PyTorch gives NCCL's options to all backends after it; `fake` does not take them.
        name = ",".join(sorted(name.split(","), key=lambda part: "gloo" not in part))
        name = re.sub(r"\bgloo\b", distributed_c10d.Backend.FAKE, name)
        if ":" not in name:
            name = distributed_c10d.Backend(name)
        return make_group(group_size, group_rank, ranks, name, *arguments, **options)

    return make


class _Voices:
    """What ranks of a job say, one after the other: files of those that ran before."""

    def __init__(self, place: RankPlace, folder: Path) -> None:
        self._place = place
        self._folder = folder

    @property
    def is_alone(self) -> bool:
        """True: ranks that have not run say nothing."""
        return True

    def say(self, key: str, value: bytes) -> None:
        """Keeps what this rank says."""
        (self._folder / key).write_bytes(value)

    def hear(self, key: str, rank: int) -> bytes:
        """Returns what another rank has said. If that is still to run, ends this process: it begins anew afterwards.
        Raises RuntimeError if it is not to run."""
        try:
            value = (self._folder / key).read_bytes()
            if rank != self._place.rank:
                with (self._folder / f"heard-{self._place.rank}").open("a") as file:
                    file.write(f"{rank}\n")
            return value
        except FileNotFoundError:
            if rank in self._ranks_to_come():
                self._wait_for(rank, key)
            raise RuntimeError(
                f"rank {self._place.rank} runs alone and needs an object that rank {rank} sends: "
                f"run that one in the same command, and those that it needs: --rank 0-{max(rank, self._place.rank)} "
                "runs all of them"
            ) from None

    def _ranks_to_come(self) -> list[int]:
        """Returns the ranks that the command runs after this one (cli/plugin/rank_queue.h)."""
        return [int(rank) for rank in (self._folder / "to-come").read_text().split()]

    def _wait_for(self, rank: int, key: str) -> NoReturn:
        (self._folder / f"waits-{self._place.rank}").write_text(f"{rank} {key}")
        print(
            f"offprof: rank {self._place.rank} needs an object that rank {rank} sends, and begins anew after that one",
            file=sys.stderr,
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_RANK_WAITS)
