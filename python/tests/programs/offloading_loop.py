"""Trains with OffloadActivations in its loop, and prints the figures of the report."""

import argparse
import json

import offprof
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--context-first", action="store_true")
parser.add_argument("--model-first", action="store_true")
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--steps", type=int, default=6)
arguments = parser.parse_args()
device = "cuda" if arguments.cuda else "cpu"

if arguments.context_first:
    offloading = offprof.OffloadActivations("offload")
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.BatchNorm1d(64), nn.Linear(64, 8)).to(device)
if arguments.model_first:
    offloading = offprof.OffloadActivations("offload")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
peak = 0
for _ in range(arguments.steps):
    with offloading:
        loss = model(torch.randn(128, 32, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    if arguments.cuda:
        peak = torch.cuda.memory_stats()["requested_bytes.all.peak"]
        torch.cuda.reset_peak_memory_stats()
    optimizer.zero_grad()
print(json.dumps({**(offloading.report().measured or {}), "peak_of_torch": peak}))
