"""Trains a small language model on sequences of several lengths that are packed without padding.

Exercises: shapes that depend on values of the host, which reach the device in a mask of padding: the tokens that it
leaves, the lengths of the sequences, and the positions in the packed row.
"""

import settings
import torch
from torch import nn

WIDTH, HEADS, BLOCKS, VOCABULARY = 128, 4, 3, 512
LENGTHS = (96, 50, 33, 70)


class Block(nn.Module):
    """Attention within each sequence of a packed row."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, row: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        """Returns the output for a row [tokens, width], whose sequences begin at `bounds`."""
        lengths = bounds.diff().tolist()
        parts = []
        for sequence in self.inner(self.norm(row)).split(lengths):
            heads = (part.unflatten(1, (HEADS, -1)).transpose(0, 1)[None] for part in sequence.chunk(3, dim=1))
            attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            parts.append(attended[0].transpose(0, 1).flatten(1))
        return row + self.out(torch.cat(parts))


class Model(nn.Module):
    """A language model that packs the sequences of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns the loss for tokens [batch, length], of which `mask` selects those that are no padding."""
        kept = mask.flatten().nonzero().squeeze(1)
        bounds = nn.functional.pad(mask.sum(dim=1, dtype=torch.int32).cumsum(0, dtype=torch.int32), (1, 0))
        row = self.embedding(tokens).flatten(0, 1)[kept]
        for block in self.blocks:
            row = block(row, bounds)
        return nn.functional.cross_entropy(self.head(row), tokens.flatten()[kept])


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = Model().to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    for _ in range(arguments.steps):
        tokens = torch.randint(0, VOCABULARY, mask.shape)
        loss = model(tokens.to(arguments.device), mask.to(arguments.device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
