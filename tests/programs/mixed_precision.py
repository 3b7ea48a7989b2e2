"""Trains a transformer encoder with automatic mixed precision.

Exercises: autocast, GradScaler, clipping of unscaled gradients, accumulation of two batches in a step.
"""

import settings
import torch
from torch import nn


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    layer = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(64, 8)).to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(arguments.device, init_scale=1024.0)
    for _ in range(arguments.steps):
        for _ in range(2):
            features = torch.randn(4, 32, 64).to(arguments.device)
            target = torch.randn(4, 32, 8).to(arguments.device)
            with torch.autocast(arguments.device, dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(features), target) / 2
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
