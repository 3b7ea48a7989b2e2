"""Measures how long the host takes to give operators to the current CUDA device.

    python3 tests/published/measure_host_costs.py OUTPUT.json

The device may be a virtual GPU. Tensors are so small that the device always waits for the host. Writes the median time of a call, in
microseconds, with and without autograd.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

DEVICE = "cuda"
CALLS, ROUNDS = 200, 7


def microseconds(work: Callable[[], object], calls: int = CALLS) -> float:
    """Returns the median time of a call, from the first to the end of the last one's kernels."""
    times = []
    for _ in range(ROUNDS + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls * 1e3)
    return round(statistics.median(times[1:]), 2)


def operators(*, requires_grad: bool) -> dict[str, Callable[[], object]]:
    """Returns calls of single operators."""
    f = nn.functional

    def leaf(*shape: int) -> Tensor:
        return torch.randn(shape, device=DEVICE, requires_grad=requires_grad)

    x, y, weight, row = leaf(8, 64), leaf(8, 64), leaf(64, 64), leaf(64)
    heads = [leaf(1, 2, 16, 64) for _ in range(3)]
    image, kernel = leaf(1, 8, 16, 16), leaf(8, 8, 3, 3)
    ids = torch.zeros(8, dtype=torch.long, device=DEVICE)
    return {
        "view": lambda: x.view(64, 8),
        "add": lambda: x + y,
        "multiply": lambda: x * y,
        "gelu": lambda: f.gelu(x),
        "sum": x.sum,
        "linear": lambda: f.linear(x, weight),
        "linear with bias": lambda: f.linear(x, weight, row),
        "layer norm": lambda: f.layer_norm(x, (64,), row, row),
        "softmax": lambda: x.softmax(-1),
        "dropout": lambda: f.dropout(x, 0.1),
        "concatenate": lambda: torch.cat((x, y)),
        "embedding": lambda: f.embedding(ids, weight),
        "cross entropy": lambda: f.cross_entropy(x, ids),
        "attention": lambda: f.scaled_dot_product_attention(*heads),
        "convolution": lambda: f.conv2d(image, kernel, padding=1),
        "transpose": lambda: x.t().contiguous(),
    }


def chain(length: int) -> Callable[[], object]:
    """Returns a call of a forward and a backward pass through `length` products."""
    weights = [torch.randn(8, 64, device=DEVICE, requires_grad=True) for _ in range(length)]
    x = torch.randn(8, 64, device=DEVICE)

    def run() -> None:
        y = x
        for weight in weights:
            y = y * weight
        y.sum().backward()

    return run


def layer_chain(layer: Callable[[], nn.Module], *shape: int, autocast: bool = False) -> Callable[[], object]:
    """Returns a call of a forward and a backward pass through 20 layers, whose gradients are added up."""
    layers = nn.Sequential(*(layer() for _ in range(20))).to(DEVICE)
    x = torch.randn(shape, device=DEVICE, requires_grad=True)

    def run() -> None:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            y = layers(x * 1)
        y.sum().backward()

    return run


def layer_chains() -> dict[str, Callable[[], object]]:
    """Returns passes through layers of modules."""
    image = (1, 8, 16, 16)
    return {
        "linear": layer_chain(lambda: nn.Linear(64, 64), 8, 64),
        "linear, autocast": layer_chain(lambda: nn.Linear(64, 64), 8, 64, autocast=True),
        "layer norm": layer_chain(lambda: nn.LayerNorm(64), 8, 64),
        "layer norm, autocast": layer_chain(lambda: nn.LayerNorm(64), 8, 64, autocast=True),
        "GELU": layer_chain(nn.GELU, 8, 64),
        "dropout": layer_chain(lambda: nn.Dropout(0.1), 8, 64),
        "convolution": layer_chain(lambda: nn.Conv2d(8, 8, 3, padding=1, bias=False), *image),
        "convolution, autocast": layer_chain(lambda: nn.Conv2d(8, 8, 3, padding=1, bias=False), *image, autocast=True),
        "batch norm": layer_chain(lambda: nn.BatchNorm2d(8), *image),
        "batch norm, ReLU": layer_chain(lambda: nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(inplace=True)), *image),
    }


def optimizer_step(count: int, kind: str) -> Callable[[], object]:
    parameters = [nn.Parameter(torch.zeros(16, 16, device=DEVICE)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    kinds = {"foreach": False, "fused": False} | ({kind: True} if kind != "single" else {})
    return torch.optim.AdamW(parameters, **kinds).step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    figures = {
        "device": torch.cuda.get_device_name(),
        "without autograd": {name: microseconds(call) for name, call in operators(requires_grad=False).items()},
        "with autograd": {name: microseconds(call) for name, call in operators(requires_grad=True).items()},
        "forward and backward of products": {str(n): microseconds(chain(n), 20) for n in (1, 10, 50, 200)},
        "forward and backward of 20 layers": {name: microseconds(call, 20) for name, call in layer_chains().items()},
        "AdamW": {
            f"{kind} {n}": microseconds(optimizer_step(n, kind), 20)
            for kind in ("single", "foreach", "fused")
            for n in (1, 10, 100, 300)
        },
    }
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
