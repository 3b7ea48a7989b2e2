"""Records a function that makes one step, and prints the result as JSON. Arguments: policies."""

import functools
import json
import sys

import offprof
import torch
from torch.utils.checkpoint import checkpoint


@functools.cache
def model_and_optimizer():
    """Makes the model in the first step."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.BatchNorm1d(64)]
    model = torch.nn.Sequential(torch.nn.Sequential(*layers), torch.nn.Sequential(*layers), torch.nn.Linear(64, 8))
    return model, torch.optim.AdamW(model.parameters())


def step():
    """Makes a step with dropout, whose second block is a re-entrant checkpointed region."""
    (first, second, last), optimizer = model_and_optimizer()
    loss = last(checkpoint(second, first(torch.randn(32, 64)), use_reentrant=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


result = offprof.record(step, policy=sys.argv[1], compare=sys.argv[2:], output="record.json.gz", steps=2)
print(json.dumps({"gradients": result.gradients, "measured": result.measured, "compared": result.compared}))
