"""Trains on data that two forked worker processes load."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.randn(400, 32), torch.randint(0, 2, (400,)))
while True:
    for batch, labels in DataLoader(data, batch_size=8, shuffle=True, num_workers=2):
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
