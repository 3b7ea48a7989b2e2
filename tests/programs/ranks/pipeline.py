"""A pipeline of stages, one a rank, with the 1F1B schedule. Stages tell each other the shapes of their tensors."""

import blocks
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

MICROBATCHES = 8

options = blocks.arguments()
device = blocks.start()
rank, ranks = dist.get_rank(), dist.get_world_size()
model = nn.Sequential(*(blocks.Block() for _ in range(2))).to(device)
stage = PipelineStage(model, rank, ranks, device)
schedule = Schedule1F1B(stage, n_microbatches=MICROBATCHES, loss_fn=nn.functional.mse_loss)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(options.steps):
    batch = torch.randn(MICROBATCHES, blocks.LENGTH, blocks.WIDTH, device=device)
    inputs = (batch,) if rank == 0 else ()
    target = {"target": batch} if rank == ranks - 1 else {}
    schedule.step(*inputs, **target)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
