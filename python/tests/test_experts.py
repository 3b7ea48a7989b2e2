"""Tests of values that are known on the virtual GPU, and of mixtures of experts, whose routing is assumed."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, run_under_exec

pytest.importorskip("transformers")

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "programs"
PROGRAM = PROGRAMS / "mixture_of_experts.py"
PARALLEL = PROGRAMS / "ranks" / "experts.py"
KNOWN_VALUES = Path(__file__).resolve().parent / "programs" / "known_values.py"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
IS_FULL = os.environ.get("OFFPROF_TEST_EXTENT") == "full"
EXPERTS, CHOICES, TOKENS, LAYERS, STEPS = 4, 2, 2 * 33, 2, 3
ASSUMED = ("--assume", "balanced-experts")
FIGURES = (
    "device_peak_bytes",
    "device_allocated_peak_bytes",
    "device_reserved_peak_bytes",
    "host_peak_bytes",
    "d2h_bytes",
    "step_time_ns",
)
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


def test_a_router_is_balanced_also_if_its_scores_are_known(tmp_path: Path) -> None:
    script = """
        import torch

        scores = torch.eye(4)[[0] * 8].cuda()  # all rows prefer expert 0
        print(scores.topk(1, -1).indices.flatten().bincount(minlength=4).tolist())
    """
    assert run_under_exec(tmp_path, ASSUMED, (), script).out.strip() == "[2, 2, 2, 2]"
    assert run_under_exec(tmp_path, (), (), script).out.strip() == "[8, 0, 0, 0]"


def test_otherwise_no_expert_gets_a_token(tmp_path: Path) -> None:
    assert not expert_calls(tmp_path)


def test_other_policies_are_predicted_to_the_byte(report_of: Callable[..., dict[str, Any]]) -> None:
    flags = ("--device", "virtual", *ASSUMED)
    kept = report_of("run", PROGRAM, *flags, "-o", "t.json.gz", *ON_GPU, 40)
    offloaded = report_of("run", PROGRAM, *flags, "--policy", "offload", *ON_GPU, 40)["measured"]
    predicted = report_of("simulate", "t.json.gz", "--policy", "offload")["predicted"]
    for figure in FIGURES:
        assert predicted[figure] == offloaded[figure], figure
    assert kept["inexact"] == []
    assert offloaded["d2h_bytes"] > 0


@pytest.mark.parametrize("counting", ["histogram", *(["bins", "mask"] if IS_FULL else [])])
def test_an_expert_parallel_rank_is_predicted_exactly(report_of: Callable[..., dict[str, Any]], counting: str) -> None:
    flags = ("--world-size", 4, "--rank", 1, *ASSUMED)
    program = ("--", "--steps", 40, "--counting", counting)
    kept = report_of("run", PARALLEL, *flags, "-o", "t.json.gz", *program)["ranks"][0]
    measured = report_of("run", PARALLEL, *flags, "--policy", "offload", *program)["ranks"][0]["measured"]
    predicted = report_of("simulate", "t.json.gz", "--policy", "offload")["predicted"]
    for figure in FIGURES:
        assert predicted[figure] == measured[figure], figure
    assert kept["inexact"] == []
    assert {each["name"] for each in kept["collectives"]} == {"all_to_all", "send", "receive"}
    assert measured["d2h_bytes"] > 0


def test_an_expert_parallel_rank_alone_has_the_memory_of_one_among_its_peers(tmp_path: Path) -> None:
    together = run_under_exec(tmp_path, ASSUMED, (*TORCHRUN, 4, PARALLEL), variables=ONE_THREAD, timeout_s=300)
    assert together.status == 0, together.err
    ranks = (*ASSUMED, "--world-size", 4, "--rank", "0-3")
    alone = run_under_exec(tmp_path, ranks, (sys.executable, PARALLEL), variables=ONE_THREAD, timeout_s=300)
    assert alone.status == 0, alone.err
    for rank in range(4):
        for figure in ("peak_allocated_bytes", "peak_requested_bytes"):
            assert alone.of_rank(rank)[figure] == together.of_rank(rank)[figure], (rank, figure)
        assert alone.of_rank(rank)["value_reads"] == together.of_rank(rank)["value_reads"] == []
        assert alone.collectives(rank) == together.collectives(rank)


def test_values_computed_from_known_ones_are_those_of_the_cpu(tmp_path: Path) -> None:
    done = run_under_exec(tmp_path, (), (sys.executable, KNOWN_VALUES, 12))
    assert done.status == 0, done.err
    assert "720 known tensors are those of the CPU" in done.out


def test_tells_of_unknown_values_alone(tmp_path: Path) -> None:
    script = """
        import torch

        mask = (torch.arange(10) % 3 == 0).cuda()
        rows = torch.randn(10, 4, device="cuda")
        assert rows[mask].shape == (4, 4)
        assert mask.sum().item() == 4
    """
    assert run_under_exec(tmp_path, (), (), script).process["value_reads"] == []
    script += """
        assert rows[rows[:, 0] > 0].shape == (0, 4)
        assert rows.sum().item() == 0
    """
    unknown = ["aten::_local_scalar_dense", "aten::nonzero"]
    assert run_under_exec(tmp_path, (), (), script).process["value_reads"] == unknown


def test_only_a_virtual_gpu_assumes(offprof: Run) -> None:
    done = offprof("run", PROGRAM, "--device", "host", *ASSUMED)
    assert done.returncode == 2
    assert "--assume is for a virtual GPU" in done.stderr
