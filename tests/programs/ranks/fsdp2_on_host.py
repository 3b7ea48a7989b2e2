"""Sharded parameters (fully_shard) that stay on the host and are gathered on the device for each block."""

import blocks
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

options = blocks.arguments()
device = blocks.start()
model = blocks.Model()
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
for block in model.blocks:
    fully_shard(block, mesh=mesh, offload_policy=CPUOffloadPolicy())
fully_shard(model, mesh=mesh, offload_policy=CPUOffloadPolicy())
blocks.train(model, options.steps, device)
