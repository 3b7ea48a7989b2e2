"""Trains a perceptron with a thread that makes batches and child processes that do not train.

Exercises: tensors made on another thread during a step, `os.fork`, and `subprocess`.
"""

import os
import queue
import subprocess
import sys
import threading

import settings
import torch
from torch import nn


def make_batches(batches: "queue.Queue[torch.Tensor]", count: int, seed: int) -> None:
    numbers = torch.Generator().manual_seed(seed)
    for _ in range(count):
        batches.put(torch.randn(64, 128, generator=numbers))


def fork_a_child() -> None:
    child = os.fork()
    if child == 0:
        os._exit(sum(range(10)) - 45)  # ends without Python's clean-up, as a child that does not train does
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"the child ended with status {status}")


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128)).to(
        arguments.device
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches: queue.Queue[torch.Tensor] = queue.Queue(maxsize=2)
    maker = threading.Thread(target=make_batches, args=(batches, arguments.steps, arguments.seed), daemon=True)
    maker.start()
    for step in range(arguments.steps):
        features = batches.get().to(arguments.device)
        loss = nn.functional.mse_loss(model(features), features)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            fork_a_child()
    maker.join()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
