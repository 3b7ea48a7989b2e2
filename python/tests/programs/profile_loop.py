"""Trains within offprof.profile, without an optimizer of torch.optim, and prints the number of trained steps."""

import offprof
import torch

trained = 0
with offprof.profile(policy="offload", output="profile.json.gz", steps=2) as p:
    weight = torch.nn.Parameter(torch.randn(64, 64))
    while not p.is_done or trained % 10 != 0:
        (torch.randn(16, 64) @ weight).sigmoid().mean().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad = None
        trained += 1
        p.step()
print(trained, p.result.measured["d2h_bytes"] > 0)
