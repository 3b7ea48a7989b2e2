"""Ranks that tell each other Python objects and small tensors."""

import os

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

os.write(1, f"{name[0]} {sizes} {count.item()}\n".encode())  # whole lines, though ranks print at the same time
dist.barrier()
dist.destroy_process_group()
