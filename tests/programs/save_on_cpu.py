"""Trains a perceptron with saved-tensor hooks of its own around some of its layers.

Exercises: `save_on_cpu`, and hooks that pack to half precision; both take precedence over hooks of a tool.
"""

import settings
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    layers = nn.ModuleList(nn.Sequential(nn.Linear(128, 128), nn.GELU()) for _ in range(6)).to(arguments.device)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)
    half_precision = saved_tensors_hooks(lambda tensor: tensor.bfloat16(), lambda tensor: tensor.float())
    for _ in range(arguments.steps):
        features = torch.randn(128, 128).to(arguments.device)
        for layer in layers[:2]:
            features = layer(features)
        with save_on_cpu(pin_memory=arguments.device == "cuda"):
            for layer in layers[2:4]:
                features = layer(features)
        with half_precision:
            features = layers[4](features)
        loss = layers[5](features).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
