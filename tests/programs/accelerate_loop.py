"""Trains a perceptron in a loop with Accelerate.

Exercises: wrapped optimizer, loader and backward; gradient accumulation over two batches; clipping of gradients.
"""

import settings
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    accelerator = Accelerator(cpu=arguments.device == "cpu", gradient_accumulation_steps=2)
    model = nn.Sequential(
        nn.Linear(64, 256), nn.SiLU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 8)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = 2 * arguments.steps
    data = TensorDataset(torch.randn(32 * batches, 64), torch.randint(0, 8, (32 * batches,)))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=32, shuffle=True))
    for features, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
