"""Expert parallel training: each rank has some experts, and tokens travel to those that the router chooses.

The ranks tell each other how many tokens they send, since the routing decides it.
"""

from typing import Any

import blocks
import torch
import torch.distributed as dist
from torch import nn

WIDTH, HIDDEN, EXPERTS, CHOICES, LAYERS, TOKENS = 128, 256, 16, 3, 3, 4 * 129


def count_by_bins(experts: torch.Tensor) -> torch.Tensor:
    """Returns how many of the choices each expert has, in the manner of Megatron-Core."""
    return torch.bincount(experts.flatten(), minlength=EXPERTS)


def count_by_histogram(experts: torch.Tensor) -> torch.Tensor:
    """Returns the same in the manner of torchtitan."""
    return torch.histc(experts.flatten(), bins=EXPERTS, min=0, max=EXPERTS)


def count_by_mask(experts: torch.Tensor) -> torch.Tensor:
    """Returns the same by a mask of choices."""
    return nn.functional.one_hot(experts, EXPERTS).sum(dim=(0, 1))


COUNTS = {"bins": count_by_bins, "histogram": count_by_histogram, "mask": count_by_mask}


class Exchange(torch.autograd.Function):
    """Sends rows to other ranks, and their gradients back."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, received: list[int], sent: list[int]) -> torch.Tensor:
        """Returns the rows that come. `received` and `sent` are their numbers by rank."""
        ctx.numbers = received, sent
        result = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(result, rows.contiguous(), received, sent)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Returns the gradient of the rows."""
        received, sent = ctx.numbers
        return Exchange.apply(gradients[0], sent, received), None, None


class Experts(nn.Module):
    """A mixture of experts, of which this rank has a part."""

    def __init__(self, counting: str) -> None:
        """Creates the router and this rank's experts."""
        super().__init__()
        self.count = COUNTS[counting]
        own = EXPERTS // dist.get_world_size()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(own, WIDTH, HIDDEN) / 16)
        self.down = nn.Parameter(torch.randn(own, HIDDEN, WIDTH) / 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the sums of the chosen experts' outputs for [tokens, width]."""
        weights, experts = self.router(tokens).softmax(-1).topk(CHOICES, sorted=False)
        order = experts.flatten().argsort(stable=True)
        counts = self.count(experts)
        counts_here = torch.empty_like(counts)
        dist.all_to_all_single(counts_here, counts)
        ranks = dist.get_world_size()
        sent, received = (each.view(ranks, -1).sum(1).tolist() for each in (counts, counts_here))
        rows = Exchange.apply(tokens[order // CHOICES], received, sent)
        own = len(self.up)
        by_expert = (
            torch.arange(own, device=tokens.device).repeat(ranks).repeat_interleave(counts_here).argsort(stable=True)
        )
        parts = rows[by_expert].split(counts_here.view(ranks, own).sum(0).tolist())
        outputs = torch.cat(
            [(part @ up).relu() @ down for part, up, down in zip(parts, self.up, self.down, strict=True)]
        )
        back = Exchange.apply(torch.empty_like(outputs).index_copy(0, by_expert, outputs), sent, received)
        weighted = back * weights.flatten()[order].unsqueeze(1)
        return torch.zeros_like(tokens).index_add(0, order // CHOICES, weighted)


def main() -> None:
    """Trains layers of experts."""
    options = blocks.arguments(counting=str)
    device = blocks.start()
    layers = [layer for _ in range(LAYERS) for layer in (nn.LayerNorm(WIDTH), Experts(options.counting or "bins"))]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(options.steps):
        model(torch.randn(TOKENS, WIDTH, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
