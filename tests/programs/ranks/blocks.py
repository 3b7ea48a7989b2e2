"""A small model of transformer blocks, and the start and the steps that the programs of this folder share.

The programs know nothing of offprof. torchrun starts them, or a launcher that sets the same variables.
"""

import argparse
import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

WIDTH, HEADS, BLOCKS, VOCABULARY, BATCH, LENGTH = 256, 4, 4, 1000, 4, 128


class Block(nn.Module):
    """Attention and a multilayer perceptron. The number of heads follows from the width of the projections."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        """Creates a block."""
        super().__init__()
        self.head_width = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the block's output for [batch, length, width]."""
        y = self.norm1(x)
        query, key, value = (
            linear(y).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    """A language model of blocks."""

    def __init__(self) -> None:
        """Creates a model with random weights."""
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the logits for [batch, length]."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(x)
        return logits


def arguments(**more: Callable[[str], object]) -> argparse.Namespace:
    """Returns the command line's options: `--steps`, and `more` by name and type."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    for name, kind in more.items():
        parser.add_argument(f"--{name}", type=kind)
    return parser.parse_args()


def start() -> torch.device:
    """Joins the other ranks. Returns this rank's device."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    return device


def train(model: nn.Module, steps: int, device: torch.device, foreach: bool | None = None) -> None:
    """Trains on random tokens, and leaves the other ranks."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=foreach)
    for _ in range(steps):
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH), device=device)
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()
