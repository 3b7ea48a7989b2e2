"""A step whose operations PyTorch's own FlopCounterMode counts on the CPU, and offprof on the virtual GPU.

`counted_step.py count` prints PyTorch's count of a step without checkpointing. `counted_step.py plain` and
`reentrant` make steps with a checkpointed block, which backward computes again.
"""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

MODE = sys.argv[1]
DEVICE = "cpu" if MODE == "count" else "cuda"


class Model(nn.Module):
    """Embeddings, a convolution, a block, attention by plain products, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        self.positions = nn.Embedding(128, 64)  # larger, and no tokens
        self.convolution = nn.Conv1d(64, 64, 3, padding=1)
        self.block = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.attention = nn.Linear(64, 192)
        self.head = nn.Linear(64, 100)

    def run_block(self, features: torch.Tensor) -> torch.Tensor:
        if MODE == "count":
            return self.block(features)
        return checkpoint(self.block, features, use_reentrant=MODE == "reentrant")

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = self.positions(torch.arange(tokens.shape[1], device=DEVICE)[None])
        features = self.convolution((self.embedding(tokens) + positions).transpose(1, 2)).transpose(1, 2)
        features = features + self.run_block(features)
        query, key, value = self.attention(features).chunk(3, -1)
        features = features + torch.softmax(query @ key.transpose(1, 2), -1) @ value
        return self.head(features)


model = Model().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)


def step() -> None:
    """Makes a step of two batches of 4 x 32 tokens."""
    for _ in range(2):
        tokens = torch.randint(0, 100, (4, 32), device=DEVICE)
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()


if MODE == "count":
    with FlopCounterMode(display=False) as counter:
        step()
    print(counter.get_total_flops())
else:
    for _ in range(60):
        step()
