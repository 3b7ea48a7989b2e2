"""Ranks that tell each other Python objects and small tensors."""

import blocks
import torch
import torch.distributed as dist

options = blocks.arguments()
device = blocks.start()
rank, ranks = dist.get_rank(), dist.get_world_size()

name = ["run 7" if rank == 0 else None]
dist.broadcast_object_list(name, src=0)

sizes: list[object] = [None] * ranks
dist.all_gather_object(sizes, 3)

count = torch.tensor([3], device=device)
dist.all_reduce(count)

print(name[0], sizes, count.item(), flush=True)
dist.barrier()
dist.destroy_process_group()
