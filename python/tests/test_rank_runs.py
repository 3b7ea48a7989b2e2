"""Tests of `offprof run --world-size`: ranks of many, each recorded alone."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

PROGRAMS = Path(__file__).resolve().parents[2] / "tests" / "programs" / "ranks"
TIMES = ("step_time_ns", "compute_ns", "exposed_ns", "launch_gap_ns")
MEMORY = (
    "device_peak_bytes",
    "device_allocated_peak_bytes",
    "device_reserved_peak_bytes",
    "host_peak_bytes",
    "d2h_bytes",
    "h2d_bytes",
)
STEPS = ("--", "--steps", "40")
SEED_BYTES = 1024  # what attention saves on the host for its random numbers
# Ranks that are compared. Those of a pipeline differ; of the others the last one has the smaller shards.
RANKS_OF = {
    "ddp": (1,),
    "fsdp2": (0, 1),
    "fsdp2_on_host": (1,),
    "pipeline": (0, 1),
    "tensor_parallel": (1,),
    "trainer_fsdp": (1,),
    "zero": (0,),
}
# A program whose gradients move to the host, which reads none of them.
THAT_MOVES = "fsdp2_on_host"
# Programs that gather parameters, and have some at the peak.
THAT_GATHER = ("fsdp1", "fsdp2", "fsdp2_on_host", "trainer_fsdp", "zero")
Report = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def inexact_figures(
    report_of: Report, tmp_path: Path, script: Path, *options: object, ranks: tuple[int, ...] = (0, 1)
) -> list[str]:
    """Runs two ranks without offloading, and `ranks` of them with it. Returns the figures that simulations of the latter
    have wrong."""
    of_two = ("--world-size", 2, "--rank")
    kept = report_of("run", script, *of_two, "0,1", "-o", "t.json.gz", *STEPS, *options)
    names = ",".join(map(str, ranks))
    offloaded = report_of("run", script, *of_two, names, "--policy", "offload", *STEPS, *options)
    by_rank = dict(zip(ranks, offloaded["ranks"], strict=True))
    wrong = []
    for rank, with_offloading in by_rank.items():
        plain, measured = kept["ranks"][rank], with_offloading["measured"]
        predicted = report_of("simulate", tmp_path / f"t.rank{rank}.json.gz", "--policy", "offload")["predicted"]
        wrong += [f"rank {rank}: {figure}" for figure in MEMORY + TIMES if predicted[figure] != measured[figure]]
        assert plain["rank"] == rank
        assert plain["peak"]["total_bytes"] == plain["measured"]["device_peak_bytes"]
        assert measured["d2h_bytes"] > 0
        ledger = with_offloading["ledger"]
        unsupported = sum(entry["bytes"] for entry in ledger if entry["reason"] == "unsupported_layout")
        assert unsupported <= SEED_BYTES
        assert plain["inexact"] == with_offloading["inexact"] == []
        assert plain["collectives"] == with_offloading["collectives"] != []
        assert plain["communicators"] == (2 if script.stem == "zero" else 1)
        assert (plain["peak"]["gathered_bytes"] > 0) == (script.stem in THAT_GATHER)
        assert plain["replayed"]["step_time_ns"] == plain["measured"]["step_time_ns"]
        if script.stem == THAT_MOVES:
            assert not any(note.startswith("values are read back") for note in plain.get("notes", []))
    return wrong


@pytest.mark.parametrize("name", RANKS_OF)
def test_other_policies_of_a_rank_are_predicted_exactly(
    report_of: Report, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    if name == "trainer_fsdp":
        pytest.importorskip("transformers")
    if name == "zero":
        request.getfixturevalue("deepspeed")
    # Threads of PyTorch release the buffers of DDP, so that two runs of one program can differ by a small block.
    for _ in range(3 if name == "ddp" else 1):
        wrong = inexact_figures(report_of, tmp_path, PROGRAMS / f"{name}.py", ranks=RANKS_OF[name])
        if not wrong:
            break
    assert wrong == []


def test_memory_that_other_streams_use_is_predicted_exactly(report_of: Report, tmp_path: Path) -> None:
    assert inexact_figures(report_of, tmp_path, PROGRAMS / "fsdp1.py", "--offload", 1) == []


def test_the_least_number_of_ranks_is_advised_and_fits(report_of: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    script = PROGRAMS / "fsdp2.py"
    kept = report_of("run", script, "--world-size", 2, *STEPS)
    budget = kept["ranks"][0]["measured"]["device_reserved_peak_bytes"]
    limits = ("--memory-budget", f"{budget}B", "--max-slowdown", "1%", "-o", "policy.json")
    advice = report_of("advise", script, "--world-size", "1..2", *limits, *STEPS)
    assert advice["is_within"]
    for attempt in advice["attempts"]:
        taken = attempt["recommended"]["predicted"]["device_reserved_peak_bytes"]
        assert (
            (taken <= budget) == attempt["recommended"]["is_within"] == (attempt["world_size"] >= advice["world_size"])
        )
    recommended = advice["advice"]["recommended"]
    if recommended["expandable_segments"]:
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    measured = report_of(*advice["advice"]["run"])["ranks"][0]["measured"]
    for figure in ("device_peak_bytes", "device_reserved_peak_bytes"):
        assert measured[figure] == recommended["predicted"][figure] == recommended["measured"][figure]


def test_a_stage_of_a_pipeline_is_advised_with_what_other_stages_say(report_of: Report, tmp_path: Path) -> None:
    text = (PROGRAMS / "pipeline.py").read_text()
    uneven = text.replace("blocks.Block() for _ in range(2)", "blocks.Block() for _ in range(2 + 2 * rank)")
    assert uneven != text
    (tmp_path / "pipeline.py").write_text(uneven)
    (tmp_path / "blocks.py").write_text((PROGRAMS / "blocks.py").read_text())
    script = tmp_path / "pipeline.py"
    advice = report_of("advise", script, "--world-size", 3, "--device", "virtual:l4", "-o", "policy.json", *STEPS)
    assert advice["attempts"][0]["rank"] == 2
    run = advice["advice"]["run"]
    assert run[run.index("--rank") + 1] == "0,1,2"
    measured = report_of(*run)["ranks"][2]["measured"]
    assert (
        measured["device_reserved_peak_bytes"]
        == (advice["advice"]["recommended"]["predicted"]["device_reserved_peak_bytes"])
    )


def test_a_rank_has_its_device_its_trace_and_its_name(offprof: Run, tmp_path: Path) -> None:
    script = PROGRAMS / "ddp.py"
    done = offprof("run", script, "--world-size", 16, "--nodes", 2, "--rank", 13, "-o", "t.json", *STEPS)
    assert done.returncode == 0, done.stderr
    assert "ddp.py, rank 13 of 16" in done.stdout
    assert "Ranks of 16, each alone" in done.stdout
    assert (tmp_path / "t.json").exists()
    viewed = offprof("view", "t.json")
    assert "ddp.py, rank 13 of 16" in viewed.stdout


def test_representative_ranks_have_a_trace_each(offprof: Run, tmp_path: Path) -> None:
    script = PROGRAMS / "ddp.py"
    done = offprof("run", script, "--world-size", 8, "--rank", "auto", "-o", "t.json.gz", *STEPS)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("t.*")) == ["t.rank0.json.gz", "t.rank7.json.gz"]
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"peak .* at most \(rank 0\), step .* at most \(rank 0\)", lines[0])
    assert "Memory of each rank: prediction exact to the byte." in lines
    assert lines[-1] == "Next: offprof tune t.rank0.json.gz -o policy.json"
    assert "Rank 7 of 8" not in lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rank", 1), "--rank needs --world-size"),
        (("--cluster", "pcie-gen4"), "--cluster needs --world-size"),
        (("--world-size", 2, "--rank", 2), "there is no rank 2 among 2 ranks"),
        (("--world-size", 2, "--device", "host"), "a rank without its peers needs a virtual GPU"),
    ],
)
def test_rejects_ranks_that_cannot_be(offprof: Run, options: tuple[object, ...], message: str) -> None:
    done = offprof("run", PROGRAMS / "ddp.py", *options)
    assert done.returncode == 2
    assert message in done.stderr


def program(tmp_path: Path, text: str) -> Path:
    """Writes a program that trains three layers under DDP, with `text` before each step."""
    path = tmp_path / "program.py"
    start = """
import os, signal, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
layers = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3))).to(device)
model = DistributedDataParallel(layers, device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
"""
    steps = """
    model(torch.randn(8, 64, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    path.write_text(start + textwrap.indent(text, "    ") + steps)
    return path


def test_the_rank_that_raises_is_named(offprof: Run, tmp_path: Path) -> None:
    script = program(tmp_path, "if step == 2 and rank == 1: raise ValueError('no data')")
    done = offprof("run", script, "--world-size", 4, "--rank", "0-3", "-o", "t.json")
    assert done.returncode == 2
    assert "rank 1: " in done.stderr
    assert "raised ValueError" in " ".join(done.stderr.split())
    assert sorted(path.name for path in tmp_path.glob("t.*")) == ["t.rank0.json"]


def test_the_rank_that_is_killed_is_named(offprof: Run, tmp_path: Path) -> None:
    script = program(tmp_path, "if step == 2 and rank == 1: os.kill(os.getpid(), signal.SIGKILL)")
    done = offprof("run", script, "--world-size", 4, "--rank", "1,2")
    assert done.returncode == 3
    assert "rank 1: " in done.stderr
    assert "Killed" in done.stderr


def test_a_world_that_the_model_cannot_be_sharded_to_is_refused(offprof: Run) -> None:
    done = offprof("run", PROGRAMS / "tensor_parallel.py", "--world-size", 16, *STEPS)  # it has four heads
    assert done.returncode == 2
    assert "rank 0: " in done.stderr
    assert "before its first step" in " ".join(done.stderr.split())
