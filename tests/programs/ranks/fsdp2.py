"""Sharded parameters (fully_shard), gathered for each block, in mixed precision. The model is made without memory."""

import blocks
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

options = blocks.arguments()
device = blocks.start()
with torch.device("meta"):
    model = blocks.Model()
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    fully_shard(block, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
model.to_empty(device=device)
blocks.train(model, options.steps, device)
