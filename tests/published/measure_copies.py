"""Measures copies between host and device on the current CUDA device, and what they cost the kernels beside them.

    python3 tests/gpu/measure_copies.py OUTPUT.json

Needs only PyTorch. Times are the median of those between two events. Writes

- `alone`: bandwidth of copies of pinned and of pageable memory by size, in each direction;
- `both`: bandwidth of each direction while the other one copies too;
- `beside`: for each kernel, how much longer it takes while copies run in one direction or in both, and how much longer
  the copies take.
"""

import argparse
import functools
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

DEVICE = "cuda"
SIZES = [4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
LARGE_BYTES = 1 << 30
ROUNDS = 7


def elapsed_ms(work: Callable[[], None], rounds: int = ROUNDS) -> float:
    """Returns the median time of `work` on the current stream. The first round does not count."""
    times = []
    for _ in range(rounds + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[1:])


class Link:
    """Large pinned and device buffers, and a stream for each direction."""

    def __init__(self) -> None:
        self.streams = {"d2h": torch.cuda.Stream(), "h2d": torch.cuda.Stream()}
        self.pinned = {way: torch.zeros(LARGE_BYTES, dtype=torch.uint8, pin_memory=True) for way in self.streams}
        self.device = {way: torch.zeros(LARGE_BYTES, dtype=torch.uint8, device=DEVICE) for way in self.streams}

    def copy(self, way: str, byte_count: int = LARGE_BYTES, host: torch.Tensor | None = None) -> None:
        pinned, device = (self.pinned[way] if host is None else host)[:byte_count], self.device[way][:byte_count]
        target, source = (pinned, device) if way == "d2h" else (device, pinned)
        target.copy_(source, non_blocking=True)


def copies_alone(link: Link) -> list[dict[str, Any]]:
    pageable = torch.zeros(max(SIZES), dtype=torch.uint8)
    rows = []
    for way in link.streams:
        for memory, host in (("pinned", None), ("pageable", pageable)):
            for size in SIZES:
                ms = elapsed_ms(functools.partial(link.copy, way, size, host))
                rows.append({"way": way, "memory": memory, "bytes": size, "us": round(ms * 1e3, 2)})
    return rows


def copies_of_both_ways(link: Link) -> dict[str, Any]:
    """Copies both ways at once; each direction goes on until the other one, which is timed, has ended."""
    result: dict[str, Any] = {}
    for way, stream in link.streams.items():
        (other,) = (name for name in link.streams if name != way)
        for beside in (False, True):
            times = []
            for _ in range(ROUNDS):
                torch.cuda.synchronize()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                if beside:
                    with torch.cuda.stream(link.streams[other]):
                        for _ in range(3):
                            link.copy(other)
                with torch.cuda.stream(stream):
                    begin.record()
                    link.copy(way)
                    end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end))
            result[f"{way} {'beside ' + other if beside else 'alone'} bytes_per_second"] = round(
                LARGE_BYTES / statistics.median(times) * 1e3
            )
    return result


def kernels() -> dict[str, Callable[[], None]]:
    """Kernels limited by compute, by memory, by the L2 cache, and by launches."""
    big = [torch.randn(8192, 8192, dtype=torch.bfloat16, device=DEVICE) for _ in range(3)]
    small = [torch.randn(2048, 2048, dtype=torch.bfloat16, device=DEVICE) for _ in range(3)]
    narrow = torch.randn(4096, 4096, dtype=torch.bfloat16, device=DEVICE)
    heads = [torch.randn(2, 32, 4096, 128, dtype=torch.bfloat16, device=DEVICE) for _ in range(3)]
    wide = torch.randn(64 << 20, dtype=torch.bfloat16, device=DEVICE)
    single = torch.randn(2048, 4096, dtype=torch.float32, device=DEVICE)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return {
        "matmul 8192 bfloat16": lambda: (torch.mm(big[0], big[1], out=big[2]), None)[1],
        "matmul 2048 bfloat16": lambda: (torch.mm(small[0], small[1], out=small[2]), None)[1],
        "attention 4096 x 128 causal": lambda: (sdpa(*heads, is_causal=True), None)[1],
        "add of 128 MiB": lambda: (wide.add_(1.0), None)[1],
        "copy of 128 MiB": lambda: (wide.clone(), None)[1],
        "add of 32 MiB (fits L2)": lambda: (narrow.add_(1.0), None)[1],
        "layer norm 2048 x 4096 float32": lambda: (torch.nn.functional.layer_norm(single, (4096,)), None)[1],
    }


def beside(link: Link, kernel: Callable[[], None]) -> dict[str, float]:
    """Returns the time of a kernel, in microseconds, alone and while copies run, and the copies' bandwidth beside it."""
    for _ in range(3):
        kernel()
    count = max(8, int(40 / elapsed_ms(kernel)))  # some 40 ms: two large copies
    result = {}
    for ways in ((), ("d2h",), ("h2d",), ("d2h", "h2d")):
        times, rates = [], []
        for _ in range(5):
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            marks = {way: [torch.cuda.Event(enable_timing=True) for _ in range(2)] for way in ways}
            for way in ways:
                with torch.cuda.stream(link.streams[way]):
                    marks[way][0].record()
                    link.copy(way)
                    marks[way][1].record()
                    for _ in range(5):
                        link.copy(way)
            begin.record()
            for _ in range(count):
                kernel()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / count)
            rates += [LARGE_BYTES / first.elapsed_time(last) * 1e3 for first, last in marks.values()]
        name = "+".join(ways) or "alone"
        result[f"{name} us"] = round(statistics.median(times) * 1e3, 2)
        if rates:
            result[f"{name} copy bytes_per_second"] = round(statistics.median(rates))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    link = Link()
    figures = {
        "device": torch.cuda.get_device_name(),
        "alone": copies_alone(link),
        "both": copies_of_both_ways(link),
        "beside": {name: beside(link, kernel) for name, kernel in kernels().items()},
    }
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
