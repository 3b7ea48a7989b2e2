"""Data parallel training: the whole model on each rank. Buckets of gradients are rebuilt after the first step."""

import blocks
from torch.nn.parallel import DistributedDataParallel

options = blocks.arguments()
device = blocks.start()
model = DistributedDataParallel(blocks.Model().to(device), device_ids=[device.index], bucket_cap_mb=1)
blocks.train(model, options.steps, device)
