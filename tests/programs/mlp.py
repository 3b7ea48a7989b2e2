"""Trains a multilayer perceptron in a plain loop.

Exercises: the simplest program, with SGD with momentum and a batch made in each step.
"""

import settings
import torch
from torch import nn


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = nn.Sequential(
        nn.Linear(64, 256),
        nn.GELU(),
        nn.Linear(256, 256),
        nn.GELU(),
        nn.Linear(256, 256),
        nn.GELU(),
        nn.Linear(256, 10),
    ).to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(arguments.steps):
        features = torch.randn(128, 64).to(arguments.device)
        labels = features[:, :10].argmax(dim=1)
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
