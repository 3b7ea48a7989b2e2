"""`offprof.OffloadActivations` with wrappers and contexts of PyTorch: on the host, in one process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import offprof
import pytest

offprof.open_device("host")  # before the first tensor

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

STEPS = 5
POLICIES: list[dict[str, Any]] = [
    {"policy": "offload"},
    {"policy": "trl"},
    {"stash": 2, "prefetch": "64KiB"},
    {"rules": [{"module": "*1", "placement": "device"}]},
]
Step = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(self.norm(x))


class Network(nn.Module):
    """Three blocks. `call` calls a block."""

    def __init__(self, call: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(64, 8)
        self.call = call or (lambda block, x: block(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = self.call(block, x)
        return self.head(x)


def plain_step(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return model(batch).square().mean()


def full(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the whole of a sharded tensor."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def train(model: nn.Module, context: Any, step: Step = plain_step, scaler: Any = None) -> list[torch.Tensor]:
    """Trains, and returns the gradients of all steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = []
    generator = torch.Generator().manual_seed(2 + (dist.get_rank() if dist.is_initialized() else 0))
    for _ in range(STEPS):
        batch = torch.randn(32, 64, generator=generator)
        with context:
            loss = step(model, batch)
        (scaler.scale(loss) if scaler else loss).backward()
        gradients += [full(parameter.grad).clone() for parameter in model.parameters()]
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.zero_grad()
    return gradients


def assert_same(
    make: Callable[[], nn.Module], settings: dict[str, Any], step: Step = plain_step, **options: Any
) -> Any:
    """Asserts that gradients are those without offloading and that something is offloaded. Returns the report."""
    offloading = offprof.OffloadActivations(**settings)
    ours = train(make(), offloading, step, **options)
    theirs = train(make(), contextlib.nullcontext(), step, **options)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    report = offloading.report()
    assert report.measured is not None
    assert report.measured["d2h_bytes"] > 0
    return report


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_ddp(settings: dict[str, Any], process_group: None) -> None:
    assert_same(lambda: nn.parallel.DistributedDataParallel(Network()), settings)


@pytest.mark.parametrize("reshards", [True, False], ids=["resharded", "kept"])
@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_fsdp2(settings: dict[str, Any], reshards: bool, process_group: None) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def sharded() -> nn.Module:
        mesh = init_device_mesh("cpu", (1,))
        model = Network()
        for block in model.blocks:
            fully_shard(block, mesh=mesh, reshard_after_forward=reshards)
        return fully_shard(model, mesh=mesh, reshard_after_forward=reshards)

    assert_same(sharded, settings)


def tensor_parallel() -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Network()
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    for block in model.blocks:
        parallelize_module(block.layers, mesh, plan)
    # The last one gathers its input beside other work, and computes on a part of the batch.
    gathering = {
        "norm": SequenceParallel(sequence_dim=0),
        "layers.0": ColwiseParallel(input_layouts=Shard(0)),
        "layers.2": RowwiseParallel(output_layouts=Shard(0)),
    }
    model.blocks.append(Block())
    parallelize_module(model.blocks[-1], mesh, gathering)
    return model


@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_tensor_parallel(settings: dict[str, Any], process_group: None) -> None:
    report = assert_same(tensor_parallel, settings)
    assert not any(entry["reason"] == "unsupported_layout" for entry in report.ledger)


def test_a_dtensor_changed_in_place_is_noticed(process_group: None) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor

    mesh = init_device_mesh("cpu", (1,))
    ones = torch.ones(64, 64, requires_grad=True)
    with offprof.OffloadActivations("offload"):
        hidden = distribute_tensor(ones, mesh, [Replicate()]) * 2
        squares = hidden * hidden
        hidden.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            squares.sum().backward()


@pytest.mark.parametrize("wrapper", ["ddp", "fsdp1", "fsdp2", "tensor_parallel"])
def test_two_ranks_of_gloo(wrapper: str) -> None:
    script = Path(__file__).parent / "programs" / "gloo_ranks.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, wrapper]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_autocast(settings: dict[str, Any]) -> None:
    def step(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return plain_step(model, batch)

    assert_same(Network, settings, step)


def test_autocast_around_the_context() -> None:
    offloading = offprof.OffloadActivations("offload")
    model = Network()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with offloading:
            loss = plain_step(model, torch.ones(32, 64))
        loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_grad_scaler(settings: dict[str, Any]) -> None:
    offloading = offprof.OffloadActivations(**settings)
    scalers = [torch.amp.GradScaler("cpu", init_scale=256.0) for _ in range(2)]
    ours = train(Network(), offloading, scaler=scalers[0])
    theirs = train(Network(), contextlib.nullcontext(), scaler=scalers[1])
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert offloading.report().steps >= STEPS - 2


def test_grad_scaler_that_skips_a_step() -> None:
    offloading = offprof.OffloadActivations("offload")
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for i in range(STEPS):
        with offloading:
            loss = plain_step(model, torch.full((32, 64), float("inf") if i == 2 else 1.0))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    assert offloading.report().measured is not None


@pytest.mark.parametrize("settings", POLICIES, ids=str)
@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "non-reentrant"])
def test_checkpointing_inside(settings: dict[str, Any], reentrant: bool) -> None:
    def call(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(block, x, use_reentrant=reentrant)

    def step(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return plain_step(model, batch.requires_grad_())

    assert_same(lambda: Network(call), settings, step)


def test_checkpointing_outside_recomputes_with_the_context() -> None:
    offloading = offprof.OffloadActivations("offload")

    def call(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with offloading:
            return block(x)

    def outside(context: Any) -> list[torch.Tensor]:
        model = Network(call if context is offloading else None)
        step: Step = lambda model, batch: checkpoint(plain_step, model, batch, use_reentrant=False)  # noqa: E731
        return train(model, contextlib.nullcontext(), step)

    ours, theirs = outside(offloading), outside(None)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("settings", [{"policy": "offload"}, {"prefetch": "64KiB"}], ids=str)
def test_compile_by_block(settings: dict[str, Any]) -> None:
    def compiled() -> nn.Module:
        model = Network()
        for block in model.blocks:
            block.compile(backend="aot_eager")
        return model

    assert_same(compiled, settings)


def test_accelerate() -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    gradients = []
    offloading = offprof.OffloadActivations("offload", prefetch="64KiB")
    for context in (offloading, contextlib.nullcontext()):
        model = Network()
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        found = []
        for i in range(2 * STEPS):
            with accelerator.accumulate(model):
                with context:
                    loss = plain_step(model, torch.full((32, 64), 0.1 * i))
                accelerator.backward(loss)
                found += [parameter.grad.clone() for parameter in model.parameters()]
                optimizer.step()
                optimizer.zero_grad()
        gradients.append(found)
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert offloading.report().steps >= STEPS - 2
