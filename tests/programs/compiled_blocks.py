"""Trains a stack of blocks that torch.compile compiles one by one.

Exercises: inductor; each compiled block is one node of the graph, which saves what its backward needs.
"""

import settings
import torch
from torch import nn


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.down(nn.functional.gelu(self.up(self.norm(features))))


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    blocks = nn.Sequential(*(Block(64) for _ in range(4))).to(arguments.device)
    for block in blocks:
        block.compile()
    optimizer = torch.optim.AdamW(blocks.parameters(), lr=1e-3)
    for _ in range(arguments.steps):
        features = torch.randn(64, 64).to(arguments.device)
        loss = nn.functional.mse_loss(blocks(features), features)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
