"""`offprof gate` with `offprof.toml`, on a training script whose memory grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import Run, build_folder

PROGRAM = """
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def loss_of(batch):
    hidden = model[0](batch)
    hidden = torch.tanh(hidden)
    return model[1](hidden).mean()

for _ in range(40):
    optimizer.zero_grad()
    loss_of(torch.ones(256, 64, device=device)).backward()
    optimizer.step()
"""
CONFIG = f"""
[gate]
devices = ["host", "virtual:h100-80gb"]
limits = ["device_peak_bytes<=+0%"]

[gate.models.mlp]
program = "src/train.py"
options = ["--python", "{sys.executable}"]
"""
# On its own line, so that this line saves what grows.
GROWN = PROGRAM.replace("torch.tanh(hidden)", "torch.tanh(hidden).exp().sin()")
LINE = PROGRAM.splitlines().index("    hidden = torch.tanh(hidden)") + 1


@pytest.fixture
def project(offprof: Run, tmp_path: Path) -> Path:
    """A project whose baselines are written."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text(PROGRAM)
    (tmp_path / "offprof.toml").write_text(CONFIG)
    end = offprof("gate", "--update", "--key", "mlp/host")
    assert end.returncode == 0, end.stderr
    return tmp_path


def test_records_and_checks_the_models_of_the_configuration(offprof: Run, project: Path) -> None:
    assert list(json.loads((project / "offprof-baselines.json").read_text())["baselines"]) == ["mlp/host"]
    missing = offprof("gate")
    assert missing.returncode == 2
    assert "has no baseline 'mlp/virtual:h100-80gb'" in " ".join(missing.stderr.split())
    assert offprof("gate", "--update").returncode == 0
    end = offprof("gate")
    assert end.returncode == 0, end.stderr
    assert "gates passed: 2" in end.stdout


def test_annotates_the_line_that_saves_what_grew(offprof: Run, project: Path) -> None:
    (project / "src/train.py").write_text(GROWN)
    end = offprof(
        "gate", "--key", "mlp/host", "--format", "github", "--report", "junit=gate.xml", "--report", "markdown=gate.md"
    )
    assert end.returncode == 1, end.stderr
    assert end.stdout.startswith(
        f"::error file=src/train.py,line={LINE},title=offprof gate mlp/host%3A device_peak_bytes::"
    )
    assert end.stdout.count("\n") == 1
    suite = ElementTree.parse(project / "gate.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert f"train.py:{LINE}" in (failure.text or "")
    assert "**failed**" in (project / "gate.md").read_text()


def test_explains_by_operator_and_line(offprof: Run, project: Path) -> None:
    (project / "src/train.py").write_text(GROWN)
    end = offprof("gate", "--key", "mlp/host", "--explain")
    assert end.returncode == 1
    assert f"train.py:{LINE}" in end.stdout
    assert "aten::sin" in end.stdout


def test_a_program_that_fails_is_named(offprof: Run, project: Path) -> None:
    (project / "src/train.py").write_text("raise ValueError('no data')")
    end = offprof("gate", "--key", "mlp/host")
    assert end.returncode == 2
    assert "mlp/host could not be recorded" in end.stderr
    assert "Run it alone: offprof run" in end.stderr


def test_the_command_of_the_action_writes_all_reports(project: Path) -> None:
    action = (Path(__file__).parents[2] / "action.yml").read_text()
    command = action.split("run: |")[1]
    names = {"PROGRAM": str(build_folder() / "offprof"), "CONFIG": "offprof.toml", "JUNIT": "gate.xml"}
    environment = {**os.environ, **names, "GITHUB_STEP_SUMMARY": str(project / "summary.md"), "VIRTUAL_ENV": sys.prefix}
    (project / "offprof.toml").write_text(CONFIG.replace(', "virtual:h100-80gb"', ""))
    end = subprocess.run(
        ["bash", "-e", "-c", command], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert end.returncode == 0, end.stderr
    assert "gates passed: 1" in end.stdout
    assert "::notice title=offprof gate::passed" in end.stdout
    assert "passed" in (project / "summary.md").read_text()
    assert (project / "gate.xml").exists()
