"""Trains a generator and a discriminator with batch normalisation, each with an optimizer of its own."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64)).to(device)
discriminator = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)).to(device)
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_discriminator = torch.optim.SGD(discriminator.parameters(), lr=1e-2, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()
for _ in range(1000):
    real = torch.randn(32, 64, device=device)
    fake = generator(torch.randn(32, 16, device=device))
    of_discriminator.zero_grad()
    loss = criterion(discriminator(real), torch.ones(32, 1, device=device))
    loss = loss + criterion(discriminator(fake.detach()), torch.zeros(32, 1, device=device))
    loss.backward()
    of_discriminator.step()
    of_generator.zero_grad()
    criterion(discriminator(fake), torch.ones(32, 1, device=device)).backward()
    of_generator.step()
