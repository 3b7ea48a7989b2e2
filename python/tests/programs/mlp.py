"""Trains a multilayer perceptron; knows nothing of offprof."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--steps", type=int, default=1000)
arguments = parser.parse_args()

torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.GELU(), torch.nn.LayerNorm(128)) for _ in range(4)]
model = torch.nn.Sequential(*blocks).to(arguments.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(arguments.steps):
    batch = torch.randn(64, 128, device=arguments.device)
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained", arguments.steps, "steps")
