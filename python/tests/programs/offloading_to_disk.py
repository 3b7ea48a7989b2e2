"""Trains under a policy that places tensors on a disk, in the current folder."""

import contextlib
import sys
from typing import Any

import offprof

offprof.open_device("host")  # before the first tensor

import torch  # noqa: E402
from torch import nn  # noqa: E402


def train(context: Any) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = []
    for _ in range(5):
        with context:
            loss = model(torch.randn(256, 64)).square().mean()
        loss.backward()
        gradients += [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        optimizer.step()
        optimizer.zero_grad()
    return gradients


try:
    offprof.OffloadActivations(sys.argv[1])
except offprof.InputError as error:
    print("no folder is given" if "no folder is given" in str(error) else error)
offloading = offprof.OffloadActivations(sys.argv[1], disk=".")
pairs = zip(train(offloading), train(contextlib.nullcontext()), strict=True)
print("gradients are equal" if all(torch.equal(a, b) for a, b in pairs) else "gradients differ")
placed = [entry for entry in offloading.report().ledger if entry["placement"] == "disk"]
print("offloads to the disk" if placed else offloading.report())
