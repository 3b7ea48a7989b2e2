"""Trains a model of the shape of Llama 2 7B for a few steps on random tokens, in bfloat16 with AdamW.

The weights are drawn on the device. Their numbers do not exist on a virtual GPU.
"""

import argparse
import contextlib

import torch
from torch import nn

VOCABULARY, WIDTH, HIDDEN, HEADS = 32000, 4096, 11008, 32


class Attention(nn.Module):
    """Causal self-attention with rotary position embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = [
            project(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        ]
        query, key = (rotate(head, *rotation) for head in heads[:2])
        mixed = nn.functional.scaled_dot_product_attention(query, key, heads[2], is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    """Transformer block: attention and a gated linear unit, each after a normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.gate_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), rotation)
        normal = self.gate_norm(x)
        return x + self.down(nn.functional.silu(self.gate(normal)) * self.up(normal))


class Llama(nn.Module):
    """The language model; returns the loss of predicting each next token."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        rotation = rotations(tokens.shape[1], x)
        for block in self.blocks:
            x = block(x, rotation)
        logits = self.head(self.norm(x))[:, :-1].float()
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def rotations(length: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosine and sine of the angle of each position and pair of channels."""
    exponents = torch.arange(0, WIDTH // HEADS, 2, device=like.device) / (WIDTH // HEADS)
    angles = torch.outer(torch.arange(length, device=like.device), 10000.0**-exponents)
    return angles.cos().repeat(1, 2).to(like.dtype), angles.sin().repeat(1, 2).to(like.dtype)


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Rotates each pair of channels (c, c + half) by the angle of the position."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=60, help="optimizer steps (default: %(default)s)")
    options.add_argument("--batch", type=int, default=2, help="sequences in a step (default: %(default)s)")
    options.add_argument("--length", type=int, default=2048, help="tokens of a sequence (default: %(default)s)")
    options.add_argument("--blocks", type=int, default=32, help="transformer blocks (default: %(default)s)")
    options.add_argument("--policy", help="policy to offload by (offprof.OffloadActivations); prints its report")
    arguments = options.parse_args()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = Llama(arguments.blocks)
    model = model.to_empty(device="cuda")
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.02) if weight.dim() > 1 else nn.init.ones_(weight)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    offloading = None
    if arguments.policy:
        import offprof

        offloading = offprof.OffloadActivations(arguments.policy)
    for _ in range(arguments.steps):
        tokens = torch.randint(0, VOCABULARY, (arguments.batch, arguments.length), device="cuda")
        with offloading or contextlib.nullcontext():
            loss = model(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if offloading:
        print(offloading.report())


if __name__ == "__main__":
    main()
