"""Trains a convolutional network with batch normalization and dropout in a plain loop.

Exercises: buffers that change in each step (running means), pooling indices, random masks, a learning-rate schedule.
"""

import settings
import torch
from torch import nn


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2)
    )


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = nn.Sequential(
        block(3, 16), block(16, 32), block(32, 64), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64 * 16, 10)
    ).to(arguments.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)
    model.train()
    for _ in range(arguments.steps):
        images = torch.randn(8, 3, 32, 32).to(arguments.device)
        labels = torch.randint(0, 10, (8,)).to(arguments.device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
