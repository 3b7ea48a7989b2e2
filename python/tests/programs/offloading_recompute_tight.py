"""Trains a model that fits into 1 GiB only if its activations are offloaded or recomputed, from the first step on."""

import offprof
import torch
from torch import nn

ROWS, WIDTH, LAYERS = 1 << 18, 64, 12  # 64 MiB for each of two tensors that a layer saves

model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
offloading = offprof.OffloadActivations("offload", rules=[{"op": "aten::addmm", "placement": "recompute"}])
for _ in range(5):
    with offloading:
        loss = model(torch.ones(ROWS, WIDTH, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
places = {entry["placement"] for entry in offloading.report().ledger}
print("trained,", "recomputes" if "recompute" in places else f"recomputes nothing: {places}")
