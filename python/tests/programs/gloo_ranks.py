"""Trains on ranks of gloo, with and without offloading, and compares all gradients: under torchrun."""

import os
import sys

import torch
import torch.distributed as dist
from test_activations_wrappers import POLICIES, Block, Network, assert_same, tensor_parallel
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


def data_parallel() -> nn.Module:
    return nn.parallel.DistributedDataParallel(Network())


def flatly_sharded() -> nn.Module:
    policy = ModuleWrapPolicy({Block})
    return FullyShardedDataParallel(Network(), auto_wrap_policy=policy, device_id=torch.device("cpu"))


def sharded() -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Network()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


MODELS = {"ddp": data_parallel, "fsdp1": flatly_sharded, "fsdp2": sharded, "tensor_parallel": tensor_parallel}

dist.init_process_group("gloo")
for settings in POLICIES:
    assert_same(MODELS[sys.argv[1]], settings)
dist.destroy_process_group()
# FSDP2 keeps the group, so gloo's threads outlive it, and the interpreter would end while one of them releases the last
# reference to a gathered tensor: "terminate called without an active exception", also without offprof.
os._exit(0)
