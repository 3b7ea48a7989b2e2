"""Sharded parameters by the older FullyShardedDataParallel, whose units are flat parameters."""

import blocks
import torch
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

options = blocks.arguments()
device = blocks.start()
model = FullyShardedDataParallel(
    blocks.Model(),
    auto_wrap_policy=ModuleWrapPolicy({blocks.Block}),
    mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
    device_id=device.index,
    use_orig_params=True,
)
blocks.train(model, options.steps, device)
