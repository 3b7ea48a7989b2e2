"""Takes the memory that a hook needs to encode a tensor in forward, frees it, and trains on. For a GPU with 1 GiB."""

import offprof
import torch
from torch import nn

MIB = 2**20
NUMBERS = 16 * MIB
offloading = offprof.OffloadActivations(rules=[{"dtype": "float32", "placement": "cast:bfloat16+host"}])
weight = nn.Parameter(torch.ones(NUMBERS, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)


def train(fills_memory: bool = False) -> None:
    taken = []
    with offloading:
        x = torch.ones(NUMBERS, device="cuda")
        torch.cuda.empty_cache()
        try:
            while fills_memory:
                taken.append(torch.empty(8 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            pass
        loss = torch.dot(x, weight)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for _ in range(4):
    train()
try:
    train(fills_memory=True)
except torch.OutOfMemoryError:
    print("OutOfMemoryError in forward")
print("left" if not offloading.is_entered else "entered")
optimizer.zero_grad()
for _ in range(4):
    train()
print(
    "encodes"
    if any(entry["placement"].startswith("cast") for entry in offloading.report().ledger)
    else offloading.report()
)
