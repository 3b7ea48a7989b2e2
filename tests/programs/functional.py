"""Trains a perceptron with gradients of each example from `torch.func`.

Exercises: `functional_call`, `grad` and `vmap`; gradients are clipped for each example, as for differential privacy.
"""

import settings
import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 4)).to(
        arguments.device
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(parameters: dict[str, torch.Tensor], features: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        outputs = functional_call(model, parameters, (features.unsqueeze(0),))
        return nn.functional.cross_entropy(outputs, label.unsqueeze(0))

    gradients_of_examples = vmap(grad(loss_of), in_dims=(None, 0, 0))
    for _ in range(arguments.steps):
        features = torch.randn(64, 32).to(arguments.device)
        labels = torch.randint(0, 4, (64,)).to(arguments.device)
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        gradients = gradients_of_examples(parameters, features, labels)
        norms = torch.stack([each.flatten(1).norm(dim=1) for each in gradients.values()]).norm(dim=0)
        scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for name, parameter in model.named_parameters():
            parameter.grad = torch.einsum("b,b...->...", scale, gradients[name]) / len(features)
        # An ordinary regularizer beside the function transforms.
        (1e-4 * model(features).square().mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"mean norm of gradients {norms.mean().item():.6f}")


if __name__ == "__main__":
    main()
