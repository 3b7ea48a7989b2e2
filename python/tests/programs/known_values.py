"""Runs random operators on a device and on the CPU, and compares what the host reads.

Values of the device that are computed from what the host has copied there are known without a GPU, and have to be those
of the CPU. What comes from random numbers of the device is not known.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Pair:
    """A tensor on the device, the same on the CPU, and whether its contents are known."""

    device: Tensor
    cpu: Tensor
    is_known: bool


def histogram(a: Tensor) -> Tensor:
    """Counts the integers 0 to 9. The CPU can do so only for floating-point numbers."""
    numbers = a if a.is_cuda else a.double()
    return torch.histc(numbers, bins=10, min=0, max=9).to(a.dtype)


ONE = (
    lambda a: a + 3,
    lambda a: a * 2 - 1,
    lambda a: a.flatten().cumsum(0),
    lambda a: a.sum(),
    lambda a: a > 4,
    lambda a: (a % 3 == 0).to(torch.int64),
    lambda a: a.flatten().sort(stable=True)[0],
    lambda a: a.flatten().argsort(stable=True),
    lambda a: a.clamp(0, 9),
    lambda a: torch.bincount(a.flatten().clamp(0, 9), minlength=10),
    lambda a: histogram(a.flatten().clamp(0, 9)),
    lambda a: torch.nn.functional.one_hot(a.flatten().clamp(0, 3), 4),
    lambda a: a.to(torch.int32).to(torch.int64),
    lambda a: a.flatten()[::2].clone(),
    lambda a: a.clone(),
    lambda a: torch.nn.functional.pad(a, (1, 1)),
    lambda a: a.float().to(torch.int64),
    lambda a: a.flip(0) if a.dim() else a + 0,
    lambda a: torch.zeros(12, dtype=torch.int64, device=a.device).scatter_add_(
        0, a.flatten().clamp(0, 11), torch.ones_like(a.flatten())
    ),
    lambda a: torch.full_like(a, 5),
    lambda a: torch.cat([a.flatten(), torch.arange(3, device=a.device)]),
)
TWO = (
    lambda a, b: a.flatten()[:4] + b.flatten()[:1],
    lambda a, b: torch.where(a.flatten()[:1] > 2, a.flatten()[:1], b.flatten()[:1]),
    lambda a, b: torch.cat([a.flatten(), b.flatten()]),
    lambda a, b: torch.maximum(a.flatten()[:1], b.flatten()[:3]),
    lambda a, b: torch.searchsorted(a.flatten().sort()[0], b.flatten()),
)
# Their shapes depend on values, so they are tried with known ones.
BY_VALUES = (
    lambda a: (a > 2).nonzero(),
    lambda a: a.flatten().unique(),
    lambda a: torch.unique_consecutive(a.flatten()),
    lambda a: a[a > 1],
    lambda a: a.masked_select(a < 5),
    lambda a: torch.arange(4, device=a.device).repeat_interleave(a.flatten()[:1].clamp(1, 5).expand(4)),
)


def add_one(a: Tensor) -> None:
    a.add_(1)


def fill_part(a: Tensor) -> None:
    a.flatten()[:2].fill_(7)


def copy_into(a: Tensor) -> None:
    a.copy_(torch.arange(a.numel()).reshape(a.shape))


def add_to_each(a: Tensor) -> None:
    torch._foreach_add_([a, a.view(-1)[:1]], 1)


def sum_into_part(a: Tensor) -> None:
    torch.cumsum(a.flatten()[1:].clone(), 0, out=a.view(-1)[1:])


IN_PLACE = (add_one, fill_part, copy_into, add_to_each, sum_into_part)


def new_pair(generator: random.Random) -> Pair:
    columns = generator.randrange(2, 6)
    cpu = torch.tensor([[generator.randrange(10) for _ in range(columns)] for _ in range(2)])
    return Pair(cpu.cuda(), cpu, is_known=True)


def unknown_pair() -> Pair:
    cpu = torch.arange(8)
    return Pair(torch.randint(0, 9, (8,), device="cuda"), cpu, is_known=False)


def apply(function: Callable[..., Tensor], *operands: Pair) -> Pair:
    device = function(*(each.device for each in operands)).contiguous()
    cpu = function(*(each.cpu for each in operands)).contiguous()
    return Pair(device, cpu, is_known=all(each.is_known for each in operands))


def step(pairs: list[Pair], generator: random.Random) -> None:
    """Draws an operator and replaces a pair by its result."""
    kind = generator.randrange(12)
    place = generator.randrange(len(pairs))
    pair = pairs[place]
    if kind == 0:
        pairs[place] = new_pair(generator)
    elif kind == 1:
        pairs[place] = unknown_pair()
    elif kind == 2 and pair.is_known:
        pairs[place] = apply(generator.choice(BY_VALUES), pair)
    elif kind in (3, 4):
        change = generator.choice(IN_PLACE)
        change(pair.device)
        change(pair.cpu)
        pair.is_known = pair.is_known or change is copy_into
    elif kind in (5, 6):
        pairs[place] = apply(generator.choice(TWO), pair, generator.choice(pairs))
    else:
        pairs[place] = apply(generator.choice(ONE), pair)
    if pairs[place].cpu.numel() > 1000 or pairs[place].cpu.numel() < 2 or pairs[place].cpu.dtype != torch.int64:
        pairs[place] = new_pair(generator)


def main() -> None:
    known = 0
    for seed in range(int(sys.argv[1])):
        generator = random.Random(seed)
        pairs = [new_pair(generator) for _ in range(3)] + [unknown_pair()]
        for number in range(60):
            step(pairs, generator)
            read = generator.choice([pair for pair in pairs if pair.is_known] or [new_pair(generator)])
            seen, expected = read.device.tolist(), read.cpu.tolist()
            assert seen == expected, f"seed {seed}, step {number}: {seen}, not {expected}"
            known += 1
    print(f"{known} known tensors are those of the CPU")


if __name__ == "__main__":
    main()
