"""Measures training steps of whole models on the current CUDA device, real or virtual.

    python tests/published/measure_models.py OUTPUT.csv [MODEL...]
    offprof exec --device virtual:h100-80gb -- python tests/published/measure_models.py OUTPUT.csv

Each model runs in a process of its own. Its weights are random. A row has the median time between the events around a
step, and the peaks of PyTorch's memory statistics. Models with small inputs make the device wait for the host.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import multiprocessing
import statistics
from collections.abc import Callable

import torch
import torchvision
import transformers
from torch import nn

DEVICE = "cuda"
UNTIMED_STEPS, TIMED_STEPS = 3, 7

# A step without the optimizer: computes the loss and calls backward.
Pass = Callable[[], None]


@dataclasses.dataclass
class Measured:
    """A model on the device: its optimizer, and the pass that a step runs before it."""

    optimizer: torch.optim.Optimizer
    run: Pass


def tokens(vocabulary: int, batch: int, length: int) -> torch.Tensor:
    """Returns random tokens, (batch, length), int64."""
    return torch.randint(0, vocabulary, (batch, length), device=DEVICE)


def adamw(model: nn.Module, *, fused: bool = False) -> torch.optim.Optimizer:
    """Returns AdamW over all weights of the model: by default, over lists of tensors."""
    return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=fused or None)


def language_model(
    model: nn.Module, batch: int, length: int, *, autocast: bool = False, fused: bool = False
) -> Measured:
    """Trains a causal language model of transformers on random tokens."""
    model.train()
    inputs = tokens(model.config.vocab_size, batch, length)

    def run() -> None:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            loss = model(input_ids=inputs, labels=inputs).loss
        loss.backward()

    return Measured(adamw(model, fused=fused), run)


def gpt2(dtype: torch.dtype) -> nn.Module:
    """GPT-2 of 124 million parameters, without dropout."""
    config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    return transformers.GPT2LMHeadModel(config).to(dtype)


def llama(dtype: torch.dtype) -> nn.Module:
    """A model of the shape of Llama 3.2 1B with a vocabulary of 32 000."""
    config = transformers.LlamaConfig(
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=32000,
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config).to(dtype)


def bert(batch: int, length: int) -> Measured:
    """BERT base with a head for masked tokens, in float32, with dropout."""
    return language_model(transformers.BertForMaskedLM(transformers.BertConfig()), batch, length, fused=True)


def image_model(model: nn.Module, batch: int, *, half: bool) -> Measured:
    """Trains a classifier of torchvision on random images of 224 x 224 with SGD; half: autocast, channels last."""
    layout = torch.channels_last if half else torch.contiguous_format
    model = model.to(memory_format=layout).train()
    images = torch.randn(batch, 3, 224, 224, device=DEVICE).to(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,), device=DEVICE)

    def run() -> None:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=half):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()

    return Measured(torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9), run)


def resnet50(batch: int, *, half: bool) -> Measured:
    """ResNet-50 of torchvision."""
    return image_model(torchvision.models.resnet50(), batch, half=half)


def vision_transformer(batch: int, *, half: bool) -> Measured:
    """ViT-B/16 of torchvision."""
    return image_model(torchvision.models.vit_b_16(), batch, half=half)


def perceptron(width: int, layers: int, batch: int) -> Measured:
    """A multilayer perceptron in float32 with Adam: many small operators."""
    modules = [module for _ in range(layers) for module in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*modules)
    inputs = torch.randn(batch, width, device=DEVICE)
    return Measured(adamw(model), lambda: model(inputs).square().mean().backward())


MODELS: dict[str, Callable[[], Measured]] = {
    "gpt2 bf16 8x1024": lambda: language_model(gpt2(torch.bfloat16), 8, 1024),
    "gpt2 bf16 1x128": lambda: language_model(gpt2(torch.bfloat16), 1, 128),
    "gpt2 autocast 8x1024": lambda: language_model(gpt2(torch.float32), 8, 1024, autocast=True),
    "gpt2 autocast 1x128": lambda: language_model(gpt2(torch.float32), 1, 128, autocast=True),
    "llama bf16 4x2048": lambda: language_model(llama(torch.bfloat16), 4, 2048),
    "llama bf16 1x64": lambda: language_model(llama(torch.bfloat16), 1, 64),
    "bert fp32 16x512": lambda: bert(16, 512),
    "bert fp32 1x64": lambda: bert(1, 64),
    "resnet50 fp32 64": lambda: resnet50(64, half=False),
    "resnet50 fp32 1": lambda: resnet50(1, half=False),
    "resnet50 autocast 128": lambda: resnet50(128, half=True),
    "vit fp32 32": lambda: vision_transformer(32, half=False),
    "vit autocast 128": lambda: vision_transformer(128, half=True),
    "vit autocast 2": lambda: vision_transformer(2, half=True),
    "perceptron fp32 24x1024": lambda: perceptron(1024, 24, 256),
}


def measure(name: str) -> list[object]:
    """Returns the row of a model, of this process."""
    torch.manual_seed(0)
    with torch.device(DEVICE):
        measured = MODELS[name]()
    spans_ms = []
    for step in range(UNTIMED_STEPS + TIMED_STEPS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        measured.run()
        measured.optimizer.step()
        measured.optimizer.zero_grad()
        end.record()
        torch.cuda.synchronize()
        if step >= UNTIMED_STEPS:
            spans_ms.append(begin.elapsed_time(end))
    statistic = torch.cuda.memory_stats()
    peaks = [statistic[f"{kind}_bytes.all.peak"] for kind in ("requested", "allocated", "reserved")]
    return [name, f"{statistics.median(spans_ms):.4f}", *peaks]


def add_row(name: str, path: str) -> None:
    """Adds the row of a model to the table."""
    with open(path, "a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(measure(name))


def main() -> None:
    """Writes a table with a row for each model."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("output")
    options.add_argument("models", nargs="*", metavar="MODEL", help="names, such as 'gpt2 bf16 1x128' (default: all)")
    arguments = options.parse_args()
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(["model", "step_ms", "requested_peak", "allocated_peak", "reserved_peak"])
    for name in arguments.models or MODELS:
        process = multiprocessing.get_context("fork").Process(target=add_row, args=(name, arguments.output))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
