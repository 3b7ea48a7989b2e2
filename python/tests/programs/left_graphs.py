"""Trains a classifier and keeps parts of its graphs until the next step: those of a metric, and of a retained loss."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
body = nn.Sequential(nn.Linear(64, 128), nn.GELU()).to(device)
heads = [nn.Sequential(nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 100)).to(device) for _ in range(2)]
parameters = [parameter for module in (body, *heads) for parameter in module.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
for _ in range(1000):
    batch = torch.randn(256, 64, device=device)
    labels = torch.randint(0, 100, (256,), device=device)
    features = body(batch)
    logits = heads[0](features)
    probabilities = logits.softmax(-1)  # saved by its own backward, and held by the program
    confidence = probabilities.square().sum(-1).mean()  # backward never comes here
    spread = heads[1](features).tanh().std()
    optimizer.zero_grad()
    spread.backward(retain_graph=True)
    nn.functional.cross_entropy(logits, labels).backward()
    optimizer.step()
