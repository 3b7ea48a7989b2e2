"""A Llama of Hugging Face of 7, 70 or 405 billion parameters, of which this rank has a part. Needs transformers.

float32 parameters, bfloat16 compute, float32 reductions, AdamW. Prints the memory peaks of the last step as JSON.
"""

import argparse
import contextlib
import json
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

GROUPED = {"vocab_size": 128256, "num_key_value_heads": 8}
SIZES = {
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
    "70b": {
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        **GROUPED,
    },
    "405b": {
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        **GROUPED,
    },
}
COLUMNS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
ROWS = ("self_attn.o_proj", "mlp.down_proj")


def parse() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=SIZES, default="7b")
    parser.add_argument("--sharding", choices=("fsdp2", "fsdp1"), default="fsdp2")
    parser.add_argument("--sequence", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="RANKS")
    parser.add_argument("--reshard-to", type=int, metavar="RANKS", help="reshard_after_forward")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--save-on-cpu", action="store_true")
    parser.add_argument(
        "--fake", type=int, nargs=2, metavar=("RANK", "RANKS"), help="PyTorch's fake process group in place of NCCL"
    )
    return parser.parse_args()


def shard(model: LlamaForCausalLM, options: argparse.Namespace, device: torch.device) -> torch.nn.Module:
    """Returns the model, made without memory, with this rank's part of its parameters on the device."""
    if options.sharding == "fsdp1":
        model.to_empty(device=device)
        return FullyShardedDataParallel(
            model,
            auto_wrap_policy=ModuleWrapPolicy({LlamaDecoderLayer}),
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
            device_id=device.index,
            use_orig_params=True,
        )
    ranks, parts = dist.get_world_size(), options.tensor_parallel
    if parts > 1:
        mesh = init_device_mesh("cuda", (ranks // parts, parts), mesh_dim_names=("data", "tensor"))
        styles = {**dict.fromkeys(COLUMNS, ColwiseParallel()), **dict.fromkeys(ROWS, RowwiseParallel())}
        for layer in model.model.layers:
            parallelize_module(layer, mesh["tensor"], styles)
        mesh = mesh["data"]
    else:
        mesh = init_device_mesh("cuda", (ranks,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    reshard = True if options.reshard_to is None else options.reshard_to
    for part in (*model.model.layers, model):
        fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    model.to_empty(device=device)
    return model


def join(fake: list[int] | None) -> torch.device:
    """Joins NCCL's process group, or a fake one as a rank of so many. Returns this rank's device."""
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if fake is None:
        dist.init_process_group("nccl")
    else:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("fake", store=FakeStore(), rank=fake[0], world_size=fake[1])
    return device


def main() -> None:
    """Trains some steps on one sequence."""
    options = parse()
    device = join(options.fake)
    torch.backends.cuda.enable_cudnn_sdp(False)  # its workspace is not known
    config = LlamaConfig(max_position_embeddings=max(4096, options.sequence), use_cache=False, **SIZES[options.size])
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    if options.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    sharded = shard(model, options, device)
    optimizer = torch.optim.AdamW(sharded.parameters(), foreach=True)
    tokens = torch.zeros(1, options.sequence, dtype=torch.long, device=device)
    for _ in range(options.steps):
        torch.cuda.reset_peak_memory_stats()
        offloading = (
            torch.autograd.graph.save_on_cpu(pin_memory=True) if options.save_on_cpu else contextlib.nullcontext()
        )
        with offloading:
            loss = sharded(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del loss
    peaks = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    print(json.dumps(peaks), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
