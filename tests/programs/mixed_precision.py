"""Trains a transformer encoder with automatic mixed precision.

Exercises: autocast, GradScaler, clipping of unscaled gradients, accumulation of two batches in a step; with
--overflow-every also optimizer steps that the scaler skips.
"""

import settings
import torch
from torch import nn


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--overflow-every", type=int, default=0, help="every n-th step has infinite gradients")
    arguments = settings.start(parser)
    layer = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(64, 8)).to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(arguments.device, init_scale=1024.0)
    for step in range(1, arguments.steps + 1):
        overflows = arguments.overflow_every > 0 and step % arguments.overflow_every == 0
        for _ in range(2):
            features = torch.randn(4, 32, 64).to(arguments.device)
            target = torch.randn(4, 32, 8).to(arguments.device)
            with torch.autocast(arguments.device, dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(features), target) / 2
            scaler.scale(loss * float("inf") if overflows else loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
