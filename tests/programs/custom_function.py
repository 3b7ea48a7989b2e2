"""Trains a perceptron with a custom autograd function.

Exercises: `torch.autograd.Function` that saves an input, an intermediate result and a scalar.
"""

from typing import Any

import settings
import torch
from torch import nn


class Swish(torch.autograd.Function):
    """x * sigmoid(beta * x) with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, features: torch.Tensor, beta: float) -> torch.Tensor:
        gate = torch.sigmoid(beta * features)
        ctx.save_for_backward(features, gate)
        ctx.beta = beta
        return features * gate

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        features, gate = ctx.saved_tensors
        return gradients[0] * (gate + ctx.beta * features * gate * (1 - gate)), None


class SwishLayer(nn.Module):
    """A linear layer with Swish."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return Swish.apply(self.linear(features), 1.5)


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = nn.Sequential(*(SwishLayer(128) for _ in range(4)), nn.Linear(128, 8)).to(arguments.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(arguments.steps):
        features = torch.randn(128, 128).to(arguments.device)
        loss = model(features).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
