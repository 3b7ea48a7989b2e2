"""Tests of mixtures of experts on the virtual GPU, whose routing is not computed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, run_under_exec

pytest.importorskip("transformers")

PROGRAM = Path(__file__).resolve().parents[2] / "tests" / "programs" / "mixture_of_experts.py"
EXPERTS, CHOICES, TOKENS, LAYERS, STEPS = 4, 2, 2 * 33, 2, 3
ASSUMED = ("--assume", "balanced-experts")
ON_GPU = ("--", "--device", "cuda", "--steps")


def expert_calls(tmp_path: Path, *options: str) -> Counter[tuple[str, int]]:
    """Trains for some steps. Returns how often each expert was called with each number of tokens."""
    command = (sys.executable, PROGRAM, "--device", "cuda", "--steps", STEPS, "--show-experts")
    done = run_under_exec(tmp_path, options, command)
    assert done.status == 0, done.err
    found = re.findall(r"^(model\.layers\.\S+experts\.\d+) (\d+)$", done.out, re.MULTILINE)
    return Counter((name, int(tokens)) for name, tokens in found)


def test_experts_get_equally_many_tokens_if_that_is_assumed(tmp_path: Path) -> None:
    calls = expert_calls(tmp_path, *ASSUMED)
    assert len(calls) == LAYERS * EXPERTS
    assert set(calls.values()) == {STEPS}
    assert {tokens for _, tokens in calls} == {TOKENS * CHOICES // EXPERTS}


def test_otherwise_no_expert_gets_a_token(tmp_path: Path) -> None:
    assert not expert_calls(tmp_path)


def test_other_policies_are_predicted_to_the_byte(report_of: Callable[..., dict[str, Any]]) -> None:
    flags = ("--device", "virtual", *ASSUMED)
    kept = report_of("run", PROGRAM, *flags, "-o", "t.json.gz", *ON_GPU, 40)
    offloaded = report_of("run", PROGRAM, *flags, "--policy", "offload", *ON_GPU, 40)["measured"]
    predicted = report_of("simulate", "t.json.gz", "--policy", "offload")["predicted"]
    for figure in ("device_peak_bytes", "device_allocated_peak_bytes", "host_peak_bytes", "d2h_bytes"):
        assert predicted[figure] == offloaded[figure], figure
    assert kept["inexact"] == []
    assert offloaded["d2h_bytes"] > 0


def test_only_a_virtual_gpu_assumes(offprof: Run) -> None:
    done = offprof("run", PROGRAM, "--device", "host", *ASSUMED)
    assert done.returncode == 2
    assert "--assume is for a virtual GPU" in done.stderr
