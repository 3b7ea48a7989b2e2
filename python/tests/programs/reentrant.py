"""Trains blocks with re-entrant activation checkpointing; the second region contains a third."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Block(nn.Module):
    """A residual block. With `inner` its layers are a checkpointed region too."""

    def __init__(self, inner):
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.Dropout(0.1)
        )
        self.inner = inner

    def forward(self, features):
        layers = checkpoint(self.layers, features, use_reentrant=True) if self.inner else self.layers(features)
        return features + layers


first, blocks, last = nn.Linear(32, 64), nn.ModuleList(Block(inner) for inner in (False, True)), nn.Linear(64, 8)
model = nn.ModuleList([first, blocks, last]).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1000):
    features = first(torch.randn(32, 32, device=device))
    for block in blocks:
        features = checkpoint(block, features, use_reentrant=True)
    last(features).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
