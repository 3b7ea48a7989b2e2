"""Trains a stack of blocks with activation checkpointing.

Exercises: non-reentrant checkpointing, whose hooks save nothing of a block; with --reentrant a second backward within
the first.
"""

import settings
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A residual block with dropout, whose random numbers a recomputation has to repeat."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features + self.layers(features)


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--reentrant", action="store_true")
    arguments = settings.start(parser)
    first = nn.Linear(32, 64).to(arguments.device)
    blocks = nn.ModuleList(Block(64) for _ in range(4)).to(arguments.device)
    last = nn.Linear(64, 32).to(arguments.device)
    optimizer = torch.optim.AdamW([*first.parameters(), *blocks.parameters(), *last.parameters()], lr=1e-3)
    for _ in range(arguments.steps):
        batch = torch.randn(64, 32).to(arguments.device)
        features = first(batch)
        for block in blocks:
            features = checkpoint(block, features, use_reentrant=arguments.reentrant)
        loss = nn.functional.mse_loss(last(features), batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
