"""Sharded parameters by the older FullyShardedDataParallel, whose units are flat parameters.

With --offload 1 the parts of the rank are on the host, and are copied in on a stream of their own.
"""

import blocks
import torch
from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

options = blocks.arguments(offload=int)
device = blocks.start()
model = FullyShardedDataParallel(
    blocks.Model(),
    auto_wrap_policy=ModuleWrapPolicy({blocks.Block}),
    mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
    device_id=device.index,
    cpu_offload=CPUOffload(offload_params=bool(options.offload)),
    use_orig_params=True,
)
blocks.train(model, options.steps, device)
