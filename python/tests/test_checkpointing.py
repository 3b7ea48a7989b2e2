"""`offprof run SCRIPT.py --checkpoint`: activation checkpointing of modules that a script does not checkpoint itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

Report = Callable[..., dict[str, Any]]

PROGRAM = """
import sys
import torch
from torch.utils.checkpoint import checkpoint

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x, *, scale=1.0):
        return x + scale * self.dropout(self.down(torch.nn.functional.gelu(self.up(x))))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(4))

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = checkpoint(block, x, scale=0.5, use_reentrant=False) if str(i) in sys.argv[1:] else block(x, scale=0.5)
        return x

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    loss = model(torch.randn(4096, 64, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
FIGURES = ("device_peak_bytes", "device_reserved_peak_bytes", "step_time_ns")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program whose arguments are the numbers of the blocks that it checkpoints itself."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    ("patterns", "blocks"),
    [("blocks.*", ["0", "1", "2", "3"]), ("blocks.1,blocks.3", ["1", "3"]), ("blocks.[02],blocks.0.up", ["0", "2"])],
)
def test_modules_are_checkpointed_as_by_the_program_itself(
    patterns: str, blocks: list[str], program: Path, report_of: Report, untimed_functions: str
) -> None:
    device = ("--device", untimed_functions)
    plain = report_of("run", program, *device)["measured"]
    by_flag = report_of("run", program, *device, "--checkpoint", patterns)["measured"]
    by_program = report_of("run", program, *device, "--", *blocks)["measured"]
    for figure in FIGURES:
        assert by_flag[figure] == by_program[figure], figure
    assert by_flag["device_peak_bytes"] < plain["device_peak_bytes"]
    assert by_flag["step_time_ns"] > plain["step_time_ns"]


def test_predictions_hold_for_checkpointed_modules(program: Path, report_of: Report) -> None:
    checkpointed = (program, "--device", "virtual:h200", "--checkpoint", "blocks.1,blocks.3")
    recorded = report_of("run", *checkpointed, "-o", "t.json.gz")
    assert recorded["inexact"] == []
    measured = report_of("run", *checkpointed, "--policy", "offload")["measured"]
    predicted = report_of("simulate", "t.json.gz", "--policy", "offload")["predicted"]
    assert measured["d2h_bytes"] > 0
    for figure in (*FIGURES, "host_peak_bytes", "d2h_bytes"):
        assert predicted[figure] == measured[figure], figure


def test_a_program_trains_as_without_checkpointing(
    program: Path, offprof: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with program.open("a") as file:
        file.write("print('loss', loss.item())\n")
    plain = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True).stdout
    options = ("--device", "host", "--checkpoint", "blocks.*", "--policy", "offload", "--threads", 1, "--continue")
    end = offprof("run", program, *options)
    assert end.returncode == 0, end.stderr
    assert plain.startswith("loss ")
    assert plain in end.stdout


def test_a_pattern_without_a_module_is_refused(program: Path, offprof: Run, tmp_path: Path) -> None:
    end = offprof("run", program, "--device", "host", "--checkpoint", "layers.*", "-o", "t.json")
    assert end.returncode == 2
    words = " ".join(end.stderr.split())
    assert "checkpoint: 'layers.*' matches no module of the program" in words
    assert "Its modules are blocks, blocks.0, blocks.0.up" in words
    assert not (tmp_path / "t.json").exists()


def test_advice_for_a_script_tries_its_modules(program: Path, report_of: Report) -> None:
    device = ("--device", "virtual:h200")
    advice = report_of("advise", program, *device, "--goal", "memory", "-o", "policy.json")
    assert any("--checkpoint" in way["flags"] for way in advice["ways"])
    recommended = advice["recommended"]
    assert recommended["measured"]["device_peak_bytes"] == recommended["predicted"]["device_peak_bytes"]


CACHING_PROGRAM = """
from types import SimpleNamespace

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 64)

    def forward(self, x, keys=None):
        key = self.up(x)
        if keys is not None:
            keys.append(key)
            key = torch.cat(keys).mean(0) + key
        return x + key.tanh()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(use_cache=True)
        self.layers = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, [] if self.config.use_cache else None)
        return x


model = Model().to("cuda" if torch.cuda.is_available() else "cpu")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(30):
    model(torch.ones(16, 64, device=model.layers[0].up.weight.device)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
def test_checkpointed_modules_have_no_cache_of_keys_and_values(device: str, report_of: Report, tmp_path: Path) -> None:
    (tmp_path / "caching.py").write_text(CACHING_PROGRAM)
    report = report_of("run", "caching.py", "--device", device, "--checkpoint", "layers.*", "-o", "t.json")
    assert "config.use_cache was set to False" in " ".join(report["notes"])
    report = report_of("run", "caching.py", "--device", device, "-o", "t.json")
    assert "use_cache" not in " ".join(report.get("notes", []))
