"""Compares rows with the ranges that reports print beside modelled times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "simulator/steps/time_factors.cpp"
NEAR_SHARE = 0.9  # of the rows that must lie within their range

# The range of the cost model that an operator is a row of: a family of kernels; for others, `elementwise`.
RANGE_OF_OPERATOR = {
    "attention": "attention",
    "batch_norm": "other",
    "convolution": "other",
    "cross_entropy": "row_operators",
    "cross_entropy_16": "row_operators",
    "embedding": "other",
    "fused_linear_cross_entropy": "products",
    "group_norm": "other",
    "layer_norm": "row_operators",
    "layer_norm_own": "row_operators",
    "linear": "products",
    "log_softmax": "row_operators",
    "max_pool": "other",
    "rms_norm_fused": "row_operators",
    "softmax": "row_operators",
    "swiglu": "products",
}


def read_ranges() -> dict[str, tuple[float, float]]:
    """Reads the ranges of real over modelled times from the cost model's source."""
    found = re.findall(r'\{"(\w+)", \{([\d.]+), ([\d.]+)\}', SOURCE.read_text(encoding="utf-8"))
    return {name: (float(low), float(high)) for name, low, high in found}


def covering_range(factors: list[float]) -> tuple[float, float]:
    """Returns the narrowest range, in logarithms around 1, that nine of ten factors lie in."""
    distances = sorted(abs(math.log(factor)) for factor in factors)
    widest = math.exp(distances[math.ceil(NEAR_SHARE * len(distances)) - 1])
    return 1 / widest, widest


def report_ranges(rows: Iterable[tuple[str, float]]) -> list[str]:
    """Prints operators and their modelled over real times against the ranges. Returns what is wrong."""
    problems = []
    factors_of: dict[str, list[float]] = {}
    for kernel, ratio in rows:
        factors_of.setdefault(RANGE_OF_OPERATOR.get(kernel, "elementwise"), []).append(1 / ratio)
    print("\n| range | rows | real / modelled: nine of ten within | stated | rows within |\n|---|---|---|---|---|")
    for name, (low, high) in read_ranges().items():
        factors = factors_of.get(name, [])
        if not factors:
            continue
        inside = sum(low <= factor <= high for factor in factors)
        narrowest = covering_range(factors)
        print(
            f"| {name} | {len(factors)} | {narrowest[0]:.2f} to {narrowest[1]:.2f} | {low} to {high} | "
            f"{inside} of {len(factors)} |"
        )
        if inside < NEAR_SHARE * len(factors):
            problems.append(f"only {inside} of {len(factors)} rows are within the range of {name}")
    return problems
