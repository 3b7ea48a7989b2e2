"""The operators of the published measurements, written as plain PyTorch.

Each function builds the tensors of one row and returns an Operator. Models follow Hugging Face transformers, whose
layers the measurements call `huggingface`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

DEVICE = "cuda"


@dataclass
class Operator:
    """One operator: `forward` computes it, `backward` goes back from its result, and `clears_gradients` says if the
    measurement drops the gradient of `x` before each pass, so that none is added up. `other` is the layer of the other
    implementation that the published measurement compares with: unused, but it takes memory."""

    x: Tensor
    forward: Callable[[], Tensor]
    backward: Callable[[Tensor], None]
    clears_gradients: bool
    other: nn.Module | None = None


class RMSNorm(nn.Module):
    """RMSNorm as Llama computes it: the mean of squares in float32, the weight in float32."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.to(torch.float32)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class GatedMLP(nn.Module):
    """The gated MLP of Llama: down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False, dtype=torch.bfloat16, device=DEVICE)
        self.up = nn.Linear(width, inner, bias=False, dtype=torch.bfloat16, device=DEVICE)
        self.down = nn.Linear(inner, width, bias=False, dtype=torch.bfloat16, device=DEVICE)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class LinearCrossEntropy(nn.Module):
    """The head of a language model and its loss."""

    def __init__(self, width: int, vocabulary: int, dtype: torch.dtype):
        super().__init__()
        self.head = nn.Linear(width, vocabulary, bias=False, dtype=dtype, device=DEVICE)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.head(x), target)


def normalization(layer: nn.Module, rows: int, width: int, dtype: torch.dtype) -> Operator:
    """A normalization of `rows` rows, with a gradient that exists before it."""
    layer = layer.to(DEVICE)
    x = torch.randn(rows, width, dtype=dtype, device=DEVICE)
    gradient = torch.randn_like(x)
    x.requires_grad_(True)
    return Operator(x, lambda: layer(x), lambda y: y.backward(gradient, retain_graph=True), True, copy.deepcopy(layer))


def rms_norm(width: int, options: dict[str, str]) -> Operator:
    return normalization(RMSNorm(width), int(options["M"]), width, torch.bfloat16)


def layer_norm(width: int, options: dict[str, str]) -> Operator:
    return normalization(nn.LayerNorm(width, eps=1e-6), int(options["M"]), width, torch.float32)


def swiglu(length: int, options: dict[str, str]) -> Operator:
    width = int(options["hidden_size"])
    x = torch.randn(int(options["B"]), length, width, dtype=torch.bfloat16, device=DEVICE, requires_grad=True)
    layer = GatedMLP(width, int(options["intermediate_size"]))
    return Operator(x, lambda: layer(x), lambda y: y.backward(torch.randn_like(y), retain_graph=True), True)


def cross_entropy(vocabulary: int, options: dict[str, str]) -> Operator:
    rows = int(options["B"]) * int(options["T"])
    x = torch.randn(rows, vocabulary, requires_grad=True, device=DEVICE)
    target = torch.randint(vocabulary, (rows,), device=DEVICE)
    return Operator(x, lambda: nn.functional.cross_entropy(x, target), lambda y: y.backward(), False)


def fused_linear_cross_entropy(rows: int, options: dict[str, str]) -> Operator:
    width, vocabulary = int(options["H"]), int(options["V"])
    model = LinearCrossEntropy(width, vocabulary, torch.bfloat16)
    x = torch.randn(rows, width, requires_grad=True, dtype=torch.bfloat16, device=DEVICE)
    target = torch.randint(vocabulary, (rows,), device=DEVICE)
    return Operator(x, lambda: model(x, target), lambda y: y.backward(), False, other=copy.deepcopy(model))


OPERATORS: dict[str, Callable[[int, dict[str, str]], Operator]] = {
    "cross_entropy": cross_entropy,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "swiglu": swiglu,
}
