"""Tensor parallel training: each rank has some heads and some hidden features of each block."""

import blocks
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

options = blocks.arguments()
device = blocks.start()
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
model = blocks.Model().to(device)
for block in model.blocks:
    columns = dict.fromkeys(("query", "key", "value", "up"), ColwiseParallel())
    rows = dict.fromkeys(("out", "down"), RowwiseParallel())
    parallelize_module(block, mesh, {**columns, **rows})
# PyTorch's lists of tensors may not hold both sharded and whole parameters.
blocks.train(model, options.steps, device, foreach=False)
