"""Trains a perceptron with the fused, the foreach or the plain implementation of AdamW.

Exercises: optimizers that update all parameters in one kernel, in lists, or one by one.
"""

import settings
import torch
from torch import nn


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--implementation", choices=("fused", "foreach", "loop"), default="fused")
    arguments = settings.start(parser)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 64)).to(
        arguments.device
    )
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-3,
        fused=arguments.implementation == "fused",
        foreach=arguments.implementation == "foreach",
    )
    for _ in range(arguments.steps):
        features = torch.randn(64, 64).to(arguments.device)
        loss = nn.functional.mse_loss(model(features), features)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
