"""The operators of the published measurements, written as plain PyTorch.

Each function builds the tensors of one row and returns an Operator. Models follow Hugging Face transformers, whose
layers the measurements call `huggingface`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

DEVICE = "cuda"


@dataclass
class Operator:
    """One operator: `forward` computes it, and `backward` goes back from its results. The measurement drops the
    gradients of the tensors in `cleared` before each pass, so that none is added up. `other` is the layer of the other
    implementation that the published measurement compares with: unused, but it takes memory."""

    forward: Callable[[], Any]
    backward: Callable[[Any], object]
    cleared: tuple[Tensor, ...] = ()
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
    """The gated MLP of Llama: down(activation(gate(x)) * up(x))."""

    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor] = nn.functional.silu):
        super().__init__()
        self.activation = activation
        self.gate = nn.Linear(width, inner, bias=False, dtype=torch.bfloat16, device=DEVICE)
        self.up = nn.Linear(width, inner, bias=False, dtype=torch.bfloat16, device=DEVICE)
        self.down = nn.Linear(inner, width, bias=False, dtype=torch.bfloat16, device=DEVICE)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class LinearCrossEntropy(nn.Module):
    """The head of a language model and its loss."""

    def __init__(self, width: int, vocabulary: int, dtype: torch.dtype):
        super().__init__()
        self.head = nn.Linear(width, vocabulary, bias=False, dtype=dtype, device=DEVICE)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.head(x), target)


def rows_of(options: dict[str, str]) -> int:
    return int(options["B"]) * int(options["T"])


def dtype_of(options: dict[str, str]) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, options["dtype"])
    return dtype


def of_one_tensor(layer: Callable[[Tensor], Tensor], shape: tuple[int, ...], dtype: torch.dtype) -> Operator:
    """An operator of one tensor, with a gradient of its result that exists before it."""
    x = torch.randn(shape, dtype=dtype, device=DEVICE)
    gradient = torch.randn_like(x)
    x.requires_grad_(True)
    return Operator(lambda: layer(x), lambda y: y.backward(gradient, retain_graph=True), (x,))


def normalization(layer: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> Operator:
    operator = of_one_tensor(layer.to(DEVICE), shape, dtype)
    operator.other = copy.deepcopy(layer)
    return operator


def rms_norm(width: int, options: dict[str, str]) -> Operator:
    return normalization(RMSNorm(width), (int(options["M"]), width), torch.bfloat16)


def layer_norm(width: int, options: dict[str, str]) -> Operator:
    return normalization(nn.LayerNorm(width, eps=1e-6), (int(options["M"]), width), torch.float32)


def swiglu(length: int, options: dict[str, str]) -> Operator:
    width = int(options["hidden_size"])
    x = torch.randn(int(options["B"]), length, width, dtype=torch.bfloat16, device=DEVICE, requires_grad=True)
    layer = GatedMLP(width, int(options["intermediate_size"]))
    return Operator(lambda: layer(x), lambda y: y.backward(torch.randn_like(y), retain_graph=True), (x,))


def cross_entropy(vocabulary: int, options: dict[str, str]) -> Operator:
    rows = rows_of(options)
    x = torch.randn(rows, vocabulary, requires_grad=True, device=DEVICE)
    target = torch.randint(vocabulary, (rows,), device=DEVICE)
    return Operator(lambda: nn.functional.cross_entropy(x, target), lambda y: y.backward())


def fused_linear_cross_entropy(rows: int, options: dict[str, str]) -> Operator:
    width, vocabulary = int(options["H"]), int(options["V"])
    model = LinearCrossEntropy(width, vocabulary, torch.bfloat16)
    x = torch.randn(rows, width, requires_grad=True, dtype=torch.bfloat16, device=DEVICE)
    target = torch.randint(vocabulary, (rows,), device=DEVICE)
    return Operator(lambda: model(x, target), lambda y: y.backward(), other=copy.deepcopy(model))


def geglu(length: int, options: dict[str, str]) -> Operator:
    width = int(options["hidden_size"])
    layer = GatedMLP(width, int(options["intermediate_size"]), lambda y: nn.functional.gelu(y, approximate="tanh"))
    return of_one_tensor(layer, (int(options["bsz"]), length, width), torch.bfloat16)


def embedding(vocabulary: int, options: dict[str, str]) -> Operator:
    layer = nn.Embedding(vocabulary, int(options["D"]), device=DEVICE)
    ids = torch.randint(vocabulary, (int(options["B"]), int(options["T"])), device=DEVICE)
    return Operator(lambda: layer(ids), lambda y: y.backward(torch.randn_like(y)))


def rotated_half(x: Tensor) -> Tensor:
    """Returns (-b, a) for the halves a and b of the last dimension."""
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-b, a), dim=-1)


def rope(x: int, options: dict[str, str]) -> Operator:
    """Rotary embedding of queries and keys as Llama computes it. `x` is the length or the width."""
    length, width = int(options.get("seq_len", x)), int(options.get("hidden_size", x))
    heads, key_heads = int(options["num_q_heads"]), int(options["num_kv_heads"])

    def rows(count: int) -> Tensor:
        shape = (1, length, count, width // heads)
        return torch.randn(shape, dtype=torch.bfloat16, device=DEVICE, requires_grad=True).transpose(1, 2)

    queries, keys = rows(heads), rows(key_heads)
    gradients = torch.randn_like(queries), torch.randn_like(keys)
    cos, sin = (torch.randn(1, 1, length, width // heads, dtype=torch.bfloat16, device=DEVICE) for _ in range(2))

    def forward() -> tuple[Tensor, Tensor]:
        return queries * cos + rotated_half(queries) * sin, keys * cos + rotated_half(keys) * sin

    return Operator(
        forward, lambda results: torch.autograd.grad(results, (queries, keys), gradients, retain_graph=True)
    )


def distribution_loss(x: Tensor, target: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> Operator:
    """A loss of two distributions, whose backward pass goes on to the logits of the first."""
    return Operator(lambda: loss(x, target), lambda y: y.backward(retain_graph=True))


def logits(rows: int, vocabulary: int, *, requires_grad: bool = False) -> Tensor:
    return torch.randn(rows, vocabulary, device=DEVICE, requires_grad=requires_grad)


def kl_div(vocabulary: int, options: dict[str, str]) -> Operator:
    rows = rows_of(options)
    x = logits(rows, vocabulary, requires_grad=True).log_softmax(-1)
    target = logits(rows, vocabulary).softmax(-1)
    return distribution_loss(x, target, lambda x, target: nn.functional.kl_div(x, target, reduction="batchmean"))


def jensen_shannon(x: Tensor, target: Tensor) -> Tensor:
    """The Jensen-Shannon divergence of two tensors of logarithms."""

    def divergence(logarithms: Tensor) -> Tensor:
        return nn.functional.kl_div(middle.log(), logarithms, reduction="batchmean", log_target=True)

    middle = torch.lerp(target.exp(), x.exp(), 0.5)
    return 0.5 * divergence(target) + 0.5 * divergence(x)


def jsd(x: int, options: dict[str, str]) -> Operator:
    """`x` is the number of rows or the vocabulary."""
    rows, vocabulary = (x, int(options["V"])) if "V" in options else (rows_of(options), x)
    logarithms = logits(rows, vocabulary, requires_grad=True).log_softmax(-1)
    return distribution_loss(logarithms, logits(rows, vocabulary).log_softmax(-1), jensen_shannon)


def tvd(vocabulary: int, options: dict[str, str]) -> Operator:
    rows = rows_of(options)
    x, target = logits(rows, vocabulary, requires_grad=True).softmax(-1), logits(rows, vocabulary).softmax(-1)
    return distribution_loss(x, target, lambda x, target: ((x - target).abs() / 2).sum() / rows)


def relu_squared(width: int, options: dict[str, str]) -> Operator:
    return of_one_tensor(lambda x: x.relu().square(), (int(options["M"]), width), dtype_of(options))


def softmax(width: int, options: dict[str, str]) -> Operator:
    return of_one_tensor(lambda x: x.softmax(-1), (int(options["M"]), width), dtype_of(options))


def group_norm(channels: int, options: dict[str, str]) -> Operator:
    layer = nn.GroupNorm(channels // int(options["channels_per_group"]), channels, eps=1e-6)
    return normalization(layer, (int(options["M"]), channels, int(options["H"])), dtype_of(options))


def fused_add_rms_norm(width: int, options: dict[str, str]) -> Operator:
    """RMSNorm of the sum of two tensors, and the sum."""
    layer = RMSNorm(width).to(DEVICE)
    x, residual, *gradients = (torch.randn(int(options["M"]), width, device=DEVICE) for _ in range(4))
    x.requires_grad_(True)
    residual.requires_grad_(True)

    def forward() -> tuple[Tensor, Tensor]:
        total = x + residual
        return layer(total), total

    return Operator(
        forward,
        lambda results: torch.autograd.backward(results, gradients, retain_graph=True),
        (x, residual),
    )


def like_gradient(forward: Callable[[], Tensor], *cleared: Tensor) -> Operator:
    """An operator whose result has a gradient that exists before it. The gradients of `cleared` are dropped."""
    gradient = torch.randn_like(forward())
    return Operator(forward, lambda y: y.backward(gradient, retain_graph=True), cleared)


def leaf(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(shape, dtype=dtype, device=DEVICE, requires_grad=True)


def linear(width: int, options: dict[str, str]) -> Operator:
    """A linear layer to `N` features; the product of each pass is of M x N x width. `tf32`: float32 on tensor cores."""
    torch.backends.cuda.matmul.allow_tf32 = options.get("tf32") == "1"
    x, weight = (leaf(int(options[rows]), width, dtype=dtype_of(options)) for rows in "MN")
    return like_gradient(lambda: nn.functional.linear(x, weight), x, weight)


def attention(length: int, options: dict[str, str]) -> Operator:
    """Scaled dot-product attention as PyTorch chooses it: flash attention for 16-bit types."""
    shape = (int(options["B"]), int(options["H"]), length, int(options["D"]))
    tensors = [leaf(*shape, dtype=dtype_of(options)) for _ in range(3)]
    causal = options["causal"] == "1"
    return like_gradient(lambda: nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal), *tensors)


def elementwise(function: Callable[[Tensor], Tensor]) -> Callable[[int, dict[str, str]], Operator]:
    """An operator over the elements of a matrix of `M` rows."""

    def make(width: int, options: dict[str, str]) -> Operator:
        x = leaf(int(options["M"]), width, dtype=dtype_of(options))
        return like_gradient(lambda: function(x), x)

    return make


def layer_of(
    layer: nn.Module, shape: tuple[int, ...], dtype: torch.dtype, layout: torch.memory_format = torch.contiguous_format
) -> Operator:
    """A layer with its weights in the type and the layout of its input."""
    layer = layer.to(DEVICE, dtype, memory_format=layout)
    x = leaf(*shape, dtype=dtype).detach().to(memory_format=layout).requires_grad_()
    return like_gradient(lambda: layer(x), x, *layer.parameters())


def row_layer(make: Callable[[int], nn.Module]) -> Callable[[int, dict[str, str]], Operator]:
    """A layer over the last dimension of a matrix of `M` rows."""
    return lambda width, options: layer_of(make(width), (int(options["M"]), width), dtype_of(options))


def image_layer(make: Callable[[int, dict[str, str]], nn.Module]) -> Callable[[int, dict[str, str]], Operator]:
    """A layer over `B` images of H x H pixels with as many channels as `x`."""

    def operator(channels: int, options: dict[str, str]) -> Operator:
        shape = (int(options["B"]), channels, int(options["H"]), int(options["H"]))
        last = options.get("layout") == "last"
        layout = torch.channels_last if last else torch.contiguous_format
        return layer_of(make(channels, options), shape, dtype_of(options), layout)

    return operator


def convolution(channels: int, options: dict[str, str]) -> nn.Module:
    """A convolution to `N` channels with kernels of K x K, a stride of `S` and `G` groups."""
    kernel, stride, groups = int(options["K"]), int(options.get("S", 1)), int(options.get("G", 1))
    return nn.Conv2d(channels, int(options["N"]), kernel, stride, kernel // 2, groups=groups, bias=False)


def binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int, dict[str, str]], Operator]:
    """An operator of two matrices of `M` rows."""

    def make(width: int, options: dict[str, str]) -> Operator:
        a, b = (leaf(int(options["M"]), width, dtype=dtype_of(options)) for _ in range(2))
        return like_gradient(lambda: function(a, b), a, b)

    return make


def adamw(count: int, options: dict[str, str]) -> Operator:
    """A step of AdamW over `count` matrices of N x N."""
    size, dtype = int(options["N"]), dtype_of(options)
    parameters = [nn.Parameter(torch.randn(size, size, dtype=dtype, device=DEVICE)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, **{options["kind"]: True})
    return Operator(optimizer.step, lambda _: None)


def nll(vocabulary: int, options: dict[str, str]) -> Operator:
    """Cross entropy over logits in a 16-bit type, as a head without a cast gives them."""
    x = leaf(rows_of(options), vocabulary, dtype=dtype_of(options))
    target = torch.randint(vocabulary, (rows_of(options),), device=DEVICE)
    return Operator(lambda: nn.functional.cross_entropy(x, target), lambda y: y.backward(retain_graph=True), (x,))


OPERATORS: dict[str, Callable[[int, dict[str, str]], Operator]] = {
    "adamw": adamw,
    "add": binary(torch.add),
    "attention": attention,
    "batch_norm": image_layer(lambda channels, _: nn.BatchNorm2d(channels)),
    "cast": elementwise(lambda x: x.float()),
    "concatenate": binary(lambda a, b: torch.cat((a, b), dim=-1)),
    "convolution": image_layer(convolution),
    "cross_entropy": cross_entropy,
    "cross_entropy_16": nll,
    "dropout": elementwise(lambda x: nn.functional.dropout(x, 0.1)),
    "embedding": embedding,
    "fused_add_rms_norm": fused_add_rms_norm,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "geglu": geglu,
    "gelu": elementwise(nn.functional.gelu),
    "group_norm": group_norm,
    "jsd": jsd,
    "kl_div": kl_div,
    "layer_norm": layer_norm,
    "layer_norm_own": row_layer(nn.LayerNorm),
    "linear": linear,
    "log_softmax": elementwise(lambda x: x.log_softmax(-1)),
    "max_pool": image_layer(lambda *_: nn.MaxPool2d(2)),
    "mean": elementwise(lambda x: x.mean(-1)),
    "multiply": binary(torch.mul),
    "relu_squared": relu_squared,
    "relu": elementwise(torch.relu),
    "rms_norm": rms_norm,
    "rms_norm_fused": row_layer(nn.RMSNorm),
    "rope": rope,
    "silu": elementwise(nn.functional.silu),
    "softmax": softmax,
    "sum_columns": elementwise(lambda x: x.sum(0)),
    "swiglu": swiglu,
    "transpose": elementwise(lambda x: x.t().contiguous()),
    "tvd": tvd,
}
