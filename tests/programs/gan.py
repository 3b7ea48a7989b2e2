"""Trains a generative adversarial network.

Exercises: two models with an optimizer each, which take turns; a step of the program is a step of both. With
--gradient-penalty also the gradient of a gradient.
"""

import settings
import torch
from torch import nn


def penalty(critic: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """Returns a penalty on gradients of the critic whose norm is not 1."""
    between = torch.lerp(real, fake, torch.rand(len(real), 1).to(real.device)).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return 10 * (gradient.norm(dim=1) - 1).square().mean()


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--gradient-penalty", action="store_true")
    arguments = settings.start(parser)
    device = arguments.device
    generator = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 64)).to(
        device
    )
    critic = nn.Sequential(
        nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
    ).to(device)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
    judge = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)
    for _ in range(arguments.steps):
        real = torch.sin(torch.linspace(0, 6, 64) + 6 * torch.rand(64, 1)).to(device)
        fake = generator(torch.randn(64, 16).to(device))

        critic_optimizer.zero_grad()
        critic_loss = judge(critic(real), ones) + judge(critic(fake.detach()), zeros)
        if arguments.gradient_penalty:
            critic_loss = critic_loss + penalty(critic, real, fake.detach())
        critic_loss.backward()
        critic_optimizer.step()

        generator_optimizer.zero_grad()
        generator_loss = judge(critic(fake), ones)
        generator_loss.backward()
        generator_optimizer.step()
    print(f"loss {critic_loss.item():.6f} and {generator_loss.item():.6f}")


if __name__ == "__main__":
    main()
