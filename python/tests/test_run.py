"""`offprof run SCRIPT.py`: what users can do wrong, and programs that behave unusually."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS, Run, write_policy

Report = Callable[..., dict[str, Any]]

TRAINING = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train_step():
    model(torch.randn(8, 64)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """A function that writes a script."""

    def write(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("print('nothing')", 2, "it ran no backward pass"),
        ("import torch\ntorch.ones(2, requires_grad=True).sum().backward()", 2, "but no optimizer of torch.optim"),
        (TRAINING + "train_step()", 2, "ended after 1 step, before everything was recorded"),
        (TRAINING + "for _ in range(6): train_step()", 2, "before everything was recorded"),
        (TRAINING + "for i in range(9):\n    train_step()\n    if i == 7: raise ValueError('broken')", 2, "ValueError"),
        ("import sys\nsys.exit(4)", 2, "ended with status 4"),
        ("def broken(:", 2, "SyntaxError"),
    ],
)
def test_a_program_that_cannot_be_recorded_is_refused_and_nothing_is_written(
    text: str, status: int, message: str, script: Callable[[str], Path], offprof: Run, tmp_path: Path
) -> None:
    end = offprof("run", script(text), "--device", "host", "-o", "trace.json")
    assert (end.returncode, message in " ".join(end.stderr.split())) == (status, True), end.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


def test_the_traceback_of_a_script_shows_the_script_alone(script: Callable[[str], Path], offprof: Run) -> None:
    end = offprof("run", script("def f():\n    raise ValueError('broken')\nf()"), "--device", "host")
    assert "ValueError: broken" in end.stderr
    assert "launcher.py" not in end.stderr
    assert "runpy" not in end.stderr


def test_a_missing_script_is_refused(offprof: Run, tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for name, message in (("missing.py", "there is no script missing.py"), ("folder.py", "folder.py is a folder")):
        end = offprof("run", name, "--device", "host")
        assert (end.returncode, message in end.stderr) == (2, True), end.stderr


def test_a_missing_module_is_refused_without_a_traceback(offprof: Run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for name, missing in (("no.such", "no.such"), ("package.no", "package.no"), ("package", "package.__main__")):
        end = offprof("run", "--device", "host", "-m", name)
        assert (end.returncode, f"there is no module {missing}" in end.stderr) == (2, True), end.stderr
        assert "Traceback" not in end.stderr


def test_a_module_whose_package_lacks_something_shows_its_traceback(offprof: Run, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import not_installed")
    (tmp_path / "package" / "train.py").write_text("")
    end = offprof("run", "--device", "host", "-m", "package.train")
    assert end.returncode == 2
    assert "No module named 'not_installed'" in end.stderr


@pytest.mark.parametrize(
    ("at_start", "message"),
    [
        ("import torch", "torch was imported when Python started"),
        ("import ctypes, os\nctypes.CDLL(os.environ['REAL_LIBRARY'])", "another libcudart.so"),
    ],
)
def test_a_virtual_gpu_has_to_be_opened_before_torch_and_real_libraries(
    at_start: str,
    message: str,
    script: Callable[[str], Path],
    offprof: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(at_start)
    monkeypatch.setenv("PYTHONPATH", str(site))
    real_library = next(Path(sysconfig.get_path("purelib")).glob("nvidia/*/lib/libcudart.so.*"))
    monkeypatch.setenv("REAL_LIBRARY", str(real_library))
    end = offprof("run", script(TRAINING), "--device", "virtual:h200", "-o", "trace.json")
    assert (end.returncode, message in " ".join(end.stderr.split())) == (3, True), end.stderr
    assert not (tmp_path / "trace.json").exists()


def test_a_python_without_torch_is_refused(script: Callable[[str], Path], offprof: Run) -> None:
    end = offprof("run", script(TRAINING), "--device", "host", "--python", "/usr/bin/python3")
    assert end.returncode == 3
    assert "-m pip install torch" in " ".join(end.stderr.split())


def test_a_missing_python_is_refused(script: Callable[[str], Path], offprof: Run) -> None:
    end = offprof("run", script(TRAINING), "--device", "host", "--python", "/nowhere/python")
    assert (end.returncode, "there is no Python at /nowhere/python" in end.stderr) == (3, True)


def test_arguments_after_the_mark_are_the_script_s(script: Callable[[str], Path], offprof: Run) -> None:
    end = offprof("run", script("import sys\nprint(sys.argv[1:])"), "--device", "host", "--", "--lr", "[1,2]", "-o")
    assert "['--lr', '[1,2]', '-o']" in end.stdout


def test_the_mark_ends_the_values_of_an_option(script: Callable[[str], Path], offprof: Run) -> None:
    program = script("import sys\nprint(sys.argv[1:])")
    end = offprof("run", program, "--device", "host", "--checkpoint", "a", "b", "--", "--device", "cuda")
    assert "['--device', 'cuda']" in end.stdout, end.stderr


def test_a_module_runs_as_main(tmp_path: Path, offprof: Run) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("import sys\nprint(__name__, sys.argv[1:])")
    end = offprof("run", "--device", "host", "-m", "package.train", "--", "--lr", "3")
    assert "__main__ ['--lr', '3']" in end.stdout


def test_a_step_function_of_the_script_needs_no_optimizer(script: Callable[[str], Path], report_of: Report) -> None:
    text = """
import torch
weight = torch.nn.Parameter(torch.randn(64, 64))
def train_step():
    (torch.randn(16, 64) @ weight).sigmoid().mean().backward()
    weight.grad = None
while True:
    train_step()
"""
    options = ("--device", "host", "--policy", "offload", "--step-function", "__main__:train_step")
    report = report_of("run", script(text), *options)
    assert report["inexact"] == []
    assert report["measured"]["d2h_bytes"] > 0


def test_a_script_may_train_on_under_the_policy(script: Callable[[str], Path], offprof: Run) -> None:
    text = TRAINING + "for step in range(400):\n    train_step()\nprint('trained')"
    end = offprof("run", script(text), "--device", "host", "--continue")
    assert end.returncode == 0, end.stderr
    assert "trained\n" in end.stdout


def test_a_timeline_takes_steps(script: Callable[[str], Path], offprof: Run) -> None:
    on_gpu = TRAINING.replace("import torch\n", "import torch\ntorch.set_default_device('cuda')\n")
    program = script(on_gpu + "for _ in range(12): train_step()")
    short = offprof("run", program, "--device", "virtual:h200", "--no-timeline")
    assert short.returncode == 0, short.stderr
    assert offprof("run", program, "--device", "virtual:h200").returncode == 2


def test_steps_that_differ_are_grouped(script: Callable[[str], Path], report_of: Report) -> None:
    text = TRAINING.replace("8, 64", "next(sizes), 64")
    text += "import itertools\nsizes = itertools.cycle([8, 8, 16])\nwhile True: train_step()"
    for shape, share in (("most-frequent", 8), ("largest", 16)):
        report = report_of("run", script(text), "--device", "host", "--shape", shape, "--policy", "keep")
        groups = report["script"]["step_groups"]
        recorded = [group for group in groups if group["is_recorded"]]
        assert len(groups) == 2
        assert recorded[0]["peak_bytes"] == (min if share == 8 else max)(group["peak_bytes"] for group in groups)
        assert report["inexact"] == []


def test_a_program_whose_steps_all_differ_is_refused(script: Callable[[str], Path], offprof: Run) -> None:
    text = TRAINING.replace("8, 64", "next(sizes), 64")
    text += "import itertools\nsizes = itertools.count(8)\nwhile True: train_step()"
    end = offprof("run", script(text), "--device", "host", "--patience", "12")
    assert end.returncode == 2
    assert "of 12 steps, at most 1 are alike" in " ".join(end.stderr.split())


def test_saved_tensor_hooks_of_the_script_take_precedence(script: Callable[[str], Path], report_of: Report) -> None:
    text = TRAINING.replace(
        "    model(torch.randn(8, 64)).mean().backward()",
        "    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n"
        "        hidden = model[:2](torch.randn(8, 64))\n"
        "    model[2](hidden).mean().backward()",
    )
    report = report_of("run", script(text + "while True: train_step()"), "--device", "host")
    assert report["script"]["saved_by_user_hooks"] > 0
    assert report["inexact"] == []


@pytest.mark.parametrize("checkpointing", ["plain", "reentrant"])
def test_a_step_has_the_operations_that_pytorch_counts(checkpointing: str, offprof: Run, tmp_path: Path) -> None:
    program = PROGRAMS / "counted_step.py"
    counted = subprocess.run([sys.executable, program, "count"], capture_output=True, text=True, check=True)
    options = ("--device", "virtual:h200", "-o", "t.json")
    assert offprof("run", program, *options, "--", checkpointing).returncode == 0
    size = json.loads((tmp_path / "t.json").read_text())["step_size"]
    assert size == {"tokens": 2 * 4 * 32, "flops": float(counted.stdout)}


def test_a_trace_has_what_the_optimizer_and_gradients_hold(
    script: Callable[[str], Path], offprof: Run, tmp_path: Path
) -> None:
    text = TRAINING.replace("SGD", "AdamW").replace("zero_grad()", "zero_grad(set_to_none=False)")
    end = offprof("run", script(text + "while True: train_step()"), "--device", "host", "-o", "t.json")
    assert end.returncode == 0, end.stderr
    model = json.loads((tmp_path / "t.json").read_text())["model"]
    parameters, scalar = 64 * 64 + 64 + 64 + 1, 4
    assert model["parameters"] == parameters
    assert model["optimizer"] == {"state_bytes": 2 * 4 * parameters + 4 * scalar, "master_weight_bytes": 0}
    assert model["held_gradient_bytes"] == 4 * parameters


def test_forked_workers_load_the_data(report_of: Report) -> None:
    report = report_of("run", PROGRAMS / "workers.py", "--device", "host", "--policy", "offload")
    assert report["inexact"] == []


def test_saved_tensors_have_the_line_and_the_module_that_saved_them(
    script: Callable[[str], Path], offprof: Run, report_of: Report, tmp_path: Path
) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "block.py").write_text(
        "import torch\n"
        "class Block(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear = torch.nn.Linear(64, 64)\n"
        "    def forward(self, value):\n"
        "        return self.linear(value).sigmoid()\n"
    )
    text = """
import torch
from blocks.block import Block
model = torch.nn.Sequential(Block(), Block())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    hidden = model(torch.randn(8, 64))
    hidden.tanh().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    end = offprof("run", script(text), "--device", "host", "--policy", "keep", "-o", "trace.json")
    assert end.returncode == 0, end.stderr
    saved = report_of("view", "trace.json", "--saved")["saved"]
    places = {(tensor["op"], tensor["module"], tensor["line"]) for tensor in saved}
    assert ("aten::addmm", "0.linear", "blocks/block.py:7") in places
    assert ("aten::sigmoid", "1", "blocks/block.py:7") in places
    assert ("aten::tanh", None, "train.py:8") in places
    by_line = report_of("view", "trace.json", "--saved", "--by", "line")["saved_by_line"]
    assert [group["line"] for group in by_line] == ["blocks/block.py:7", "train.py:8"]


def test_validate_runs_a_script_once_for_each_setting(
    script: Callable[[str], Path], offprof: Run, report_of: Report, tmp_path: Path
) -> None:
    path = script(
        TRAINING.replace(
            "torch.nn.ReLU(), torch.nn.Linear(64, 1))", "torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()"
        ).replace("8, 64)", "8, 64, device='cuda')")
        + "print('trains')\nwhile True: train_step()"
    )
    recorded = ("--device", "virtual:h200", "-o", "trace.json")
    assert offprof("run", path, *recorded, "--", "--size", "8").returncode == 0
    report = report_of("validate", path, "-t", "trace.json", "--policies", 3)
    assert (report["memory_is_exact"], report["outcome"], report["compares_times"]) == (True, "hold", True)
    assert all(setting["error"] == 0 for setting in report["settings"])
    end = offprof("validate", path, "-t", "trace.json", "--", "--size", "16")
    message = " ".join(end.stderr.split())
    assert (end.returncode, "is not the script, with the arguments, of trace.json" in message) == (2, True), message


def test_validate_gives_no_figure_of_the_times_of_different_processes(
    script: Callable[[str], Path], offprof: Run, report_of: Report
) -> None:
    path = script(TRAINING + "while True: train_step()")
    assert offprof("run", path, "--device", "host", "-o", "trace.json").returncode == 0
    report = report_of("validate", path, "-t", "trace.json", "--policies", 3)
    assert (report["memory_is_exact"], report["outcome"], report["compares_times"]) == (True, "hold", False)
    assert not {"by_trace", "less_drift", "verdicts"} & report.keys()
    assert not any("error" in setting for setting in report["settings"])


def test_a_plan_outlives_edits_that_leave_the_step_as_it_is(
    script: Callable[[str], Path], offprof: Run, report_of: Report, tmp_path: Path
) -> None:
    on_gpu = TRAINING.replace("import torch", "import torch\ntorch.set_default_device('cuda')")
    text = on_gpu + "for _ in range(400): train_step()"
    device = ("--device", "virtual:h200")
    assert offprof("run", script(text), *device, "-o", "trace.json").returncode == 0
    assert offprof("tune", "trace.json", "-o", "policy.json").returncode == 0
    path = tmp_path / "policy.json"
    plan = {"name": "plan", "threshold_bytes": 0, "tensors": [1]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "policy": plan}))
    edited = script(text.replace("lr=0.1", "lr=0.2") + "  # an edit\n")
    report = report_of("run", edited, *device, "--policy", "policy.json", "-o", "offloaded.json")
    assert (report["policy"]["tensors"], report["inexact"]) == ([1], [])
    other = script(text.replace("64, 64", "64, 32").replace("64, 1", "32, 1"))
    without_fallback = {**json.loads(path.read_text()), "fallback": None}
    path.write_text(json.dumps({key: value for key, value in without_fallback.items() if value is not None}))
    end = offprof("run", other, *device, "--policy", "policy.json")
    assert (end.returncode, "names tensors of a run with other saved tensors" in " ".join(end.stderr.split())) == (
        2,
        True,
    )
    rule = {"op": "*relu*", "placement": "recompute"}
    fallback = {"policy": {"name": "by rules", "threshold_bytes": 0, "rules": [rule]}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "fallback": fallback}))
    report = report_of("run", other, *device, "--policy", "policy.json", "-o", "offloaded.json")
    assert (report["policy"]["name"], report["inexact"]) == ("by rules", [])


def test_a_plan_for_another_program_gives_way_to_the_fallback(
    script: Callable[[str], Path], offprof: Run, report_of: Report, tmp_path: Path
) -> None:
    path = Path(write_policy(tmp_path / "policy.json", "plan", threshold_bytes=0, tensors=[0]))
    content = {**json.loads(path.read_text()), "trace_fingerprint": "of another program"}
    path.write_text(json.dumps(content))
    program = [script(TRAINING + "for _ in range(400): train_step()"), "--device", "host"]
    end = offprof("run", *program, "--policy", path)
    assert (end.returncode, "names tensors of a run with other model" in " ".join(end.stderr.split())) == (2, True)
    path.write_text(json.dumps({**content, "fallback": {"policy": {"name": "by rules", "threshold_bytes": 0}}}))
    report = report_of("run", *program, "--policy", path, "-o", "trace.json")
    assert report["policy"]["name"] == "by rules"
    assert any("its fallback is used" in note for note in report["notes"])
    simulated = report_of("simulate", "trace.json", "--policy", path)
    assert simulated["predicted"]["device_peak_bytes"] == report["measured"]["device_peak_bytes"]
    assert any("its fallback is used" in warning for warning in simulated["warnings"])


def test_a_short_script_can_do_without_recompute_steps(offprof: Run, tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(8, 8).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for _ in range(13):\n"
        "    model(torch.randn(4, 8, device='cuda')).sum().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    run = ("run", "short.py", "--device", "virtual", "-o", "t.json")
    refused = offprof(*run)
    assert refused.returncode == 2
    assert "Let it train for 2 steps more" in refused.stderr
    assert "--transforms none" in refused.stderr
    assert offprof(*run, "--transforms", "none").returncode == 0
