"""Ranks that run at the same time, as torchrun starts them, each with a virtual GPU of its own.

Collectives of tensors carry no data between them; small values are carried as if all ranks gave the same
ones. Python objects really reach the other ranks, through the store of `torch.distributed`. Imported after
torch.
"""

from __future__ import annotations

from torch.distributed import distributed_c10d

from .object_collectives import carry_objects


def talk_to_peers() -> None:
    """Lets the collectives of objects of this process reach the other ranks."""
    carry_objects(_StoreVoices())


class _StoreVoices:
    """What ranks say goes through the store by which they found each other."""

    @property
    def is_alone(self) -> bool:
        """False: the other ranks run too."""
        return False

    def say(self, key: str, value: bytes) -> None:
        """Puts the value into the store. There it stays, since any number of ranks may hear it."""
        _store().set(_key(key), value)

    def hear(self, key: str, rank: int) -> bytes:
        """Waits until the value is in the store. Raises DistStoreError if it does not come in time."""
        del rank
        value: bytes = _store().get(_key(key))
        return value


def _store() -> distributed_c10d.Store:
    return distributed_c10d._get_default_store()


def _key(key: str) -> str:
    return f"offprof/{key}"
