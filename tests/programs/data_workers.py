"""Trains a perceptron on batches that worker processes of a DataLoader make.

Exercises: workers that are forked or spawned, batches in shared memory, pinned memory with CUDA.
"""

import settings
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Sine waves with random frequencies, each computed from its index, and the class of the frequency."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        label = index % 8
        return torch.sin(torch.arange(128) * (label + 1) / 10 + index), torch.tensor(label)


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--start-method", choices=("fork", "spawn"), default="fork")
    arguments = settings.start(parser)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)).to(
        arguments.device
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(
        Waves(32 * arguments.steps),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        multiprocessing_context=arguments.start_method,
        pin_memory=arguments.device == "cuda",
    )
    for waves, labels in loader:
        outputs = model(waves.to(arguments.device, non_blocking=True))
        loss = nn.functional.cross_entropy(outputs, labels.to(arguments.device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
