"""Trains a network and waits for the device where programs often do.

Exercises: a loss that is read before backward, rows that a mask selects, whose number the host waits for, batches from
pinned memory, a norm that is read after backward, and steps whose time is taken.
"""

import time

import settings
import torch
from torch import nn


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    on_gpu = arguments.device == "cuda"
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.GELU())]
    model = nn.Sequential(*layers).to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    is_counted = (torch.arange(1024) % 4 != 0).to(arguments.device)
    losses, norms, seconds = [], [], []
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        batch = torch.randn(1024, 512)
        if on_gpu:
            batch = batch.pin_memory()
        outputs = model(batch.to(arguments.device, non_blocking=True))
        loss = outputs[is_counted].square().mean()
        losses.append(loss.item())
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        optimizer.step()
        optimizer.zero_grad()
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    print(f"loss {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
