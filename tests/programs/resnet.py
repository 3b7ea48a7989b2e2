"""Trains torchvision's ResNet-18 on random images.

Exercises: torchvision, residual connections, many convolutions of different shapes.
"""

import settings
import torch
import torchvision
from torch import nn


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = torchvision.models.resnet18(num_classes=10).to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    model.train()
    for _ in range(arguments.steps):
        images = torch.randn(4, 3, 64, 64).to(arguments.device)
        labels = torch.randint(0, 10, (4,)).to(arguments.device)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
