"""Measures what a saved tensor costs in a Python process: pack, unpack and release.

A chain of small products runs forward and backward, in turn without hooks, through offprof's engine, and through the
saved-tensor hooks of TRL and of a Python function that does nothing. The cost is the difference to the chain without
hooks, divided by the number of saved tensors. Times are those of the processor, which other programs do not lengthen.

Usage: saved_tensor.py DEVICE ELEMENTS, with `host` or a virtual GPU, and the float32 numbers of a tensor of the chain.
TRL offloads tensors of 1024 bytes and more, and only those on a GPU. Prints one JSON object: microseconds a saved
tensor, by the way that it takes.
"""

import contextlib
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

import torch  # noqa: E402
from offprof.native import load_extension  # noqa: E402
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


class Engine:
    """Steps under a policy of offprof's engine, after the chain was recorded."""

    def __init__(self, chain: Chain) -> None:
        extension = load_extension()
        self._chain = chain
        request = extension.make_request("chain", DEVICE, ["keep", "offload"], 1, 1, 1, "", "")
        self._recording = extension.Recording(request, lambda what: None, lambda: ("", ""))
        self._backward = extension.Phase.BACKWARD
        while self._recording.begin_step([chain.leaf], []):
            product = chain.forward()
            self._recording.begin_phase(self._backward)
            chain.backward(product)
            del product
            self._recording.end_backward()
            self._recording.end_step()

    @contextlib.contextmanager
    def keep(self) -> Any:
        """A step in which all tensors stay where they are."""
        self._recording.begin_unrecorded_step([self._chain.leaf], [], -1)
        yield
        self._recording.end_step()

    @contextlib.contextmanager
    def offload(self) -> Any:
        """A step in which all tensors are offloaded."""
        self._recording.begin_unrecorded_step([self._chain.leaf], [], 0)
        yield
        self._recording.end_step()


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
    load_extension().open_device(DEVICE)
    chain = Chain()
    engine = Engine(chain)
    python_functions = lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)  # noqa: E731
    ours = {"offprof keep": engine.keep, "Python functions": python_functions}
    if ELEMENTS >= LEAST_OFFLOADED and PLACE == "cuda":
        ours["offprof offload"] = engine.offload
    tensors = chain.saved_tensors()
    # TRL comes last: the streams that it computes on are not those that offprof's device watches.
    costs = _costs(chain, tensors, ours) | _costs(chain, tensors, {"trl": OffloadActivations})
    print(json.dumps(costs))


if __name__ == "__main__":
    main()
