"""Trains a critic with a gradient penalty: the gradient of a gradient."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(1000):
    real = torch.randn(32, 64, device=device, requires_grad=True)
    judged = critic(real)
    (gradient,) = torch.autograd.grad(judged.sum(), real, create_graph=True)
    loss = judged.mean() + 10 * (gradient.norm(dim=1) - 1).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
