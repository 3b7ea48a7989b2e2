"""Takes the memory that backward needs to reload, frees it, and trains on. For a GPU with 1 GiB."""

import offprof
import torch
from torch import nn

MIB = 2**20
offloading = offprof.OffloadActivations("offload")
model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(3)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def forward() -> torch.Tensor:
    with offloading:
        return model(torch.randn(16384, 1024, device="cuda")).square().sum()


def train() -> None:
    forward().backward()
    optimizer.step()
    optimizer.zero_grad()


train()
loss = forward()
torch.cuda.empty_cache()
taken = []
try:
    while True:
        taken.append(torch.empty(8 * MIB, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    pass
try:
    loss.backward()
except torch.OutOfMemoryError as error:
    print("OutOfMemoryError in backward" if "cannot be reloaded" in str(error) else error)
del taken, loss
optimizer.zero_grad()
for _ in range(4):
    train()
print("trained on")
