"""Measures what a saved tensor costs in a Python process: pack, unpack and release.

A chain of small products runs forward and backward, in turn without hooks, with `offprof.OffloadActivations` under
several policies, and through the saved-tensor hooks of TRL and of a Python function that does nothing. The cost is the
difference to the chain without hooks, divided by the number of saved tensors. Times are those of the processor, which
other programs do not lengthen.

Usage: saved_tensor.py DEVICE ELEMENTS, with `host` or a virtual GPU, and the float32 numbers of a tensor of the chain.
TRL offloads tensors of 1024 bytes and more, and only those on a GPU; elsewhere, policies that keep tensors are
compared. Prints one JSON object: microseconds a saved tensor, by the way that it takes.
"""

import contextlib
import functools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from offprof.virtual_gpu import open_virtual_gpu

DEVICE, ELEMENTS = sys.argv[1], int(sys.argv[2])
# Before torch. On the host, too, since TRL's hooks want an accelerator.
open_virtual_gpu(DEVICE.partition(":")[2] or "h200")

import offprof  # noqa: E402
import torch  # noqa: E402
from trl.models.activation_offloading import OffloadActivations  # noqa: E402

Hooks = Callable[[], AbstractContextManager[Any]]

PRODUCTS = 1000
ROUNDS = 20
PLACE = "cpu" if DEVICE == "host" else "cuda"
LEAST_OFFLOADED = 256  # elements of a tensor that TRL offloads


class Chain:
    """A chain of products. Each node saves an activation and the leaf, and does hardly any other work."""

    def __init__(self) -> None:
        self.leaf = torch.ones(ELEMENTS, device=PLACE, requires_grad=True)
        self.ones = torch.ones(ELEMENTS, device=PLACE)

    def forward(self) -> torch.Tensor:
        product = self.leaf.exp()
        for _ in range(PRODUCTS):
            product = product * self.leaf
        return product

    def backward(self, product: torch.Tensor) -> None:
        product.backward(self.ones)
        self.leaf.grad = None

    def saved_tensors(self) -> int:
        saved = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal saved
            saved += 1
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            self.backward(self.forward())
        return saved


def _seconds(chain: Chain, hooks: Hooks) -> float:
    with hooks():
        began = time.process_time()
        chain.backward(chain.forward())
        return time.process_time() - began


def _costs(chain: Chain, tensors: int, ways: dict[str, Hooks]) -> dict[str, float]:
    """Returns the microseconds that each way adds to a saved tensor."""
    ways = {"plain": contextlib.nullcontext, **ways}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way in random.sample(list(ways), len(ways)):  # a way does not always follow the same one
            times[way].append(_seconds(chain, ways[way]))
    medians = {way: statistics.median(found) * 1e6 for way, found in times.items()}
    return {way: (median - medians["plain"]) / tensors for way, median in medians.items() if way != "plain"}


def main() -> None:
    torch.set_num_threads(1)
    policies = {
        "offprof keep": offprof.OffloadActivations("keep", device=DEVICE),
        "offprof rules": offprof.OffloadActivations(rules=[{"op": "*", "placement": "device"}], device=DEVICE),
        "offprof offload": offprof.OffloadActivations("offload", device=DEVICE),
    }
    chain = Chain()
    python_functions = lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)  # noqa: E731
    # TRL's hooks offload nothing on the host, and nothing smaller on a GPU.
    has_copies = ELEMENTS >= LEAST_OFFLOADED and PLACE == "cuda"
    chosen = [way for way in policies if has_copies or way != "offprof offload"]
    ours: dict[str, Hooks] = {
        "Python functions": python_functions,
        **{way: functools.partial(policies.__getitem__, way) for way in chosen},
    }
    tensors = chain.saved_tensors()
    # TRL comes last: the streams that it computes on are not those that offprof's device watches.
    costs = _costs(chain, tensors, ours) | _costs(chain, tensors, {"trl": OffloadActivations})
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
