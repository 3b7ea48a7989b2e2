"""The steps of a script that a recording takes, and scripts whose steps vary."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

Report = Callable[..., dict[str, Any]]

# Counts its steps in the file `steps`. `rows` are those of a step; `after` is code that follows it.
TRAINING = """
import itertools, pathlib, tempfile, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
kept = []
for step in itertools.count(1):
    loss = model(torch.randn({rows}, 64, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    pathlib.Path("steps").write_text(str(step))
    {after}
"""
LOGGING = "if step % 3 == 0: print(step, loss.item())"
EVERY_SECOND_LOSS = "if step % 2 == 0: loss.item()"
AVERAGED_WEIGHTS = """if step % 2 == 0:
        kept = kept or [parameter.detach().clone() for parameter in model.parameters()]
        torch._foreach_mul_(kept, 0.9)
        torch._foreach_add_(kept, [parameter.detach() for parameter in model.parameters()], alpha=0.1)"""
EVALUATION = """if step % 4 == 0:
        with torch.no_grad():
            print(float(model.eval()(torch.randn(256, 64, device=device)).mean()))
        model.train()"""
CHECKPOINTS = """if step % 5 == 0:
        with tempfile.TemporaryFile() as file:
            torch.save([model.state_dict(), optimizer.state_dict()], file)"""
# Loads each batch on a stream of its own, while the step before runs, as timm's and apex's loaders do.
PREFETCHING = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
stream = torch.cuda.Stream()
def load():
    with torch.cuda.stream(stream):
        return torch.randn(4096, 64).pin_memory().cuda(non_blocking=True)
loaded = load()
for _ in range(20):
    torch.cuda.current_stream().wait_stream(stream)
    batch, loaded = loaded, None
    batch.record_stream(torch.cuda.current_stream())
    loaded = load()
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# Each step leaves a reference cycle that holds memory of the device. Python would collect them in any step.
REFERENCE_CYCLES = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
class Node:
    def __init__(self, tensor):
        self.tensor, self.itself, self.more = tensor, self, [[] for _ in range(37)]
for _ in range(40):
    output = model(torch.randn(4096, 64, device="cuda"))
    Node(output.detach() * 2)
    output.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
VARYING_LENGTHS = "[16, 32, 48, 32][step % 4]"

MOST_STEPS = 15


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a script of the training above."""

    def write(rows: object = 32, after: str = "") -> Path:
        path = tmp_path / "train.py"
        path.write_text(TRAINING.format(rows=rows, after=after))
        return path

    return write


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
@pytest.mark.parametrize("options", [(), ("--transforms", "recompute")], ids=["plain", "recompute"])
def test_a_recording_takes_at_most_fifteen_steps(
    device: str, options: tuple[str, ...], script: Callable[..., Path], report_of: Report, tmp_path: Path
) -> None:
    report = report_of("run", script(), "--device", device, *options)
    assert report["inexact"] == []
    assert int((tmp_path / "steps").read_text()) <= MOST_STEPS


def test_the_steps_that_the_user_asks_for_come_on_top(
    script: Callable[..., Path], report_of: Report, tmp_path: Path
) -> None:
    report_of("run", script(), "--device", "host", "--steps", "20")
    assert 20 + 10 < int((tmp_path / "steps").read_text()) < 20 + MOST_STEPS


def test_each_step_says_how_many_are_left(script: Callable[..., Path], offprof: Run) -> None:
    end = offprof("run", script(), "--device", "host", "-v")
    left = [int(number) for number in re.findall(r"^offprof: .*: at most (\d+) steps left$", end.stderr, re.MULTILINE)]
    assert left[0] == MOST_STEPS - 1
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
@pytest.mark.parametrize(
    ("rows", "after"),
    [(32, LOGGING), (32, EVALUATION), (32, CHECKPOINTS), (VARYING_LENGTHS, ""), (VARYING_LENGTHS, LOGGING)],
    ids=["logging", "evaluation", "checkpoints", "lengths", "lengths and logging"],
)
def test_steps_that_vary_do_not_stop_a_recording(
    device: str, rows: object, after: str, script: Callable[..., Path], report_of: Report, tmp_path: Path
) -> None:
    report = report_of("run", script(rows, after), "--device", device)
    assert report["inexact"] == []
    groups = report["script"]["step_groups"]
    others = report["script"]["skipped_steps"] + sum(group["steps"] for group in groups if not group["is_recorded"])
    assert int((tmp_path / "steps").read_text()) <= MOST_STEPS + others


@pytest.mark.parametrize("policy", ["keep", "offload", "trl"])
@pytest.mark.parametrize("after", [EVERY_SECOND_LOSS, AVERAGED_WEIGHTS], ids=["loss", "averaged weights"])
def test_a_step_that_does_more_without_memory_is_not_measured(
    policy: str, after: str, script: Callable[..., Path], report_of: Report
) -> None:
    report = report_of("run", script(after=after), "--device", "virtual:h200", "--policy", policy, "-o", "t.json")
    assert report["script"]["skipped_steps"] > 0
    replayed = report_of("simulate", "t.json", "--policy", policy)
    assert report["measured"]["step_time_ns"] == replayed["predicted"]["step_time_ns"]


@pytest.mark.parametrize("text", [PREFETCHING, REFERENCE_CYCLES], ids=["prefetching", "reference_cycles"])
def test_memory_that_is_not_of_the_step_alone_is_predicted(text: str, report_of: Report, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text)
    device = ("--device", "virtual:h200")
    kept = report_of("run", "train.py", *device, "-o", "t.json")
    offloaded = report_of("run", "train.py", *device, "--policy", "offload")
    assert kept["inexact"] == offloaded["inexact"] == []
    predicted = report_of("simulate", "t.json", "--policy", "offload")["predicted"]
    for figure in ("device_peak_bytes", "device_reserved_peak_bytes", "host_peak_bytes", "step_time_ns"):
        assert predicted[figure] == offloaded["measured"][figure]
    assert predicted["d2h_bytes"] > 0
    notes = " ".join(kept.get("notes", []))
    assert ("reference cycles hold 0.2 MiB of device memory" in notes) == (text is REFERENCE_CYCLES)


def test_tensors_that_share_memory_with_data_workers_do_not_tell_steps_apart(
    script: Callable[..., Path], report_of: Report, tmp_path: Path
) -> None:
    arrivals = "for _ in range(step % 3): torch.empty(0).set_(model[0].weight.untyped_storage())"
    report = report_of("run", script(after=arrivals), "--device", "host")
    assert len(report["script"]["step_groups"]) == 1
    assert int((tmp_path / "steps").read_text()) <= MOST_STEPS


@pytest.mark.parametrize(("shape", "peak"), [("largest", max), ("2", min)])
def test_another_kind_of_step_is_chosen_by_its_memory_or_its_rank(
    shape: str, peak: Callable[..., int], script: Callable[..., Path], report_of: Report
) -> None:
    report = report_of("run", script("64 if step % 3 else 16"), "--device", "host", "--shape", shape)
    groups = report["script"]["step_groups"]
    assert [group["peak_bytes"] for group in groups if group["is_recorded"]] == [
        peak(group["peak_bytes"] for group in groups)
    ]
    assert report["inexact"] == []


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
def test_a_leak_is_reported_with_its_bytes_and_its_operator(
    device: str, script: Callable[..., Path], report_of: Report
) -> None:
    report = report_of("run", script(after="kept.append(loss)"), "--device", device, "--policy", "keep")
    assert "the program keeps 4 B more with most steps (aten::mean in forward)" in " ".join(report["notes"])


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
def test_memory_that_each_step_keeps_is_predicted(device: str, script: Callable[..., Path], report_of: Report) -> None:
    report = report_of("run", script(after="kept.append(loss.detach())"), "--device", device, "--policy", "offload")
    assert "predictions are those of the last measured step" in " ".join(report["notes"])
    assert report["inexact"] == []
