"""Trains an attention layer on sequences of varying lengths, as a real script does.

Exercises: three shapes of batches; logging of every fifth step; evaluation and a checkpoint after every tenth.
"""

import random
import tempfile
from pathlib import Path

import settings
import torch
from torch import nn


class Tagger(nn.Module):
    """Predicts a tag for each token of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(200, 64)
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.feed_forward = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.tags = nn.Linear(64, 12)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        features = self.embedding(tokens)
        features = features + self.attention(features, features, features, need_weights=False)[0]
        return self.tags(features + self.feed_forward(features))


def batch(length: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(0, 200, (8, length)).to(device)
    return tokens, tokens % 12


def loss_of(model: Tagger, length: int, device: str) -> torch.Tensor:
    tokens, tags = batch(length, device)
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())


def evaluate(model: Tagger, device: str) -> float:
    model.eval()
    with torch.no_grad():
        mean = torch.stack([loss_of(model, 32, device) for _ in range(3)]).mean().item()
    model.train()
    return mean


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = Tagger().to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, arguments.steps + 1):
            loss = loss_of(model, random.choice([16, 32, 32, 48]), arguments.device)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                losses.append(loss.item())
                print(f"step {step}: loss {losses[-1]:.6f}")
            if step % 10 == 0:
                print(f"step {step}: evaluated loss {evaluate(model, arguments.device):.6f}")
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save(state, Path(folder) / "checkpoint.pt")
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
