"""The pytest plugin: `@pytest.mark.offprof_limit`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import build_folder

# 4 MiB of requested bytes, with 1000 bytes that the allocator rounds to 1024.
TEST = """
import pytest
import torch

@pytest.mark.offprof_limit({limit})
def test_step():
    kept = torch.empty(1000, dtype=torch.uint8, device="cuda")
    torch.empty(4 << 20, dtype=torch.uint8, device="cuda")
"""
PEAK = (4 << 20) + 1000

RECORDS = """
import offprof
import pytest
import torch

@pytest.mark.offprof_limit(device_peak_bytes="{limit}")
def test_step():
    model = []
    def step():
        if not model:
            model.append(torch.nn.Linear(256, 256))
        model[0](torch.ones(64, 256)).sum().backward()
        model[0].zero_grad()
    offprof.record(step, check_gradients=False)
"""


def run_pytest(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(test)
    path = os.pathsep.join([str(build_folder() / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "offprof.pytest_plugin",
        "-p",
        "no:cacheprovider",
        *options,
        "test_it.py",
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def on_gpu(folder: Path, limit: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run_pytest(folder, TEST.format(limit=limit), "--offprof-device", "virtual:h100-80gb", *options)


def test_a_test_within_its_limit_passes(tmp_path: Path) -> None:
    end = on_gpu(tmp_path, f'device_peak_bytes="<={PEAK}B", device_allocated_peak_bytes="<={(4 << 20) + 1024}B"')
    assert end.returncode == 0, end.stdout


def test_a_test_beyond_its_limit_fails_by_one_byte(tmp_path: Path) -> None:
    end = on_gpu(tmp_path, f'device_peak_bytes="<={PEAK - 1}B"')
    assert end.returncode == 1
    assert "(offprof_limit: 1 of 1 check failed)" in end.stdout
    assert "test_it.py::test_step compared with absolute limits" in end.stdout


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ('device_peek_bytes="<=1GiB"', "Did you mean `device_peak_bytes`?"),
        ('device_peak_bytes="<=1QiB"', "1QiB"),
        ("", "offprof_limit needs figures by name"),
        ('device_peak_bytes="<=+0%"', "--baseline is missing"),
        ('device_peak_bytes="<=+0%"', "Add --offprof-baselines baseline.json"),
    ],
)
def test_a_mistake_in_a_limit_is_explained(tmp_path: Path, limit: str, message: str) -> None:
    end = on_gpu(tmp_path, limit)
    assert end.returncode == 1
    assert message in " ".join(end.stdout.split())


def test_limits_relative_to_baselines(tmp_path: Path) -> None:
    baselines = ("--offprof-baselines", "baselines.json")
    limit = 'device_peak_bytes="<=+0%"'
    assert on_gpu(tmp_path, limit, *baselines, "--offprof-update").returncode == 0
    assert '"test_it.py::test_step"' in (tmp_path / "baselines.json").read_text()
    assert on_gpu(tmp_path, limit, *baselines).returncode == 0
    larger = TEST.format(limit=limit).replace("4 <<", "5 <<")
    end = run_pytest(tmp_path, larger, "--offprof-device", "virtual:h100-80gb", *baselines)
    assert end.returncode == 1
    assert "+1.00 MiB" in end.stdout
    assert "If intended: pytest --offprof-baselines baselines.json --offprof-update" in end.stdout
    assert "offprof gate " not in end.stdout


def test_update_needs_a_file(tmp_path: Path) -> None:
    end = on_gpu(tmp_path, 'device_peak_bytes="<=+0%"', "--offprof-update")
    assert end.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--offprof-update needs --offprof-baselines" in end.stderr


def test_limits_are_on_a_recorded_step(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, RECORDS.format(limit="<=1GiB")).returncode == 0
    end = run_pytest(tmp_path, RECORDS.format(limit="<=1KiB"))
    assert end.returncode == 1
    assert "(offprof_limit: 1 of 1 check failed)" in end.stdout


def test_a_test_without_gpu_and_recording_fails(tmp_path: Path) -> None:
    test = "import pytest\n@pytest.mark.offprof_limit(device_peak_bytes='<=1GiB')\ndef test_it(): pass\n"
    end = run_pytest(tmp_path, test)
    assert end.returncode == 1
    assert "used no GPU and recorded no step" in end.stdout


def test_the_installed_package_registers_the_plugin() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\noffprof = "offprof.pytest_plugin"' in project


def test_a_recording_in_a_test_is_of_the_virtual_gpu_of_the_tests(tmp_path: Path) -> None:
    on_cuda = RECORDS.replace("Linear(256, 256)", "Linear(256, 256, device='cuda')").replace(
        "ones(64, 256)", "ones(64, 256, device='cuda')"
    )
    device = ("--offprof-device", "virtual:l4")
    done = run_pytest(tmp_path, on_cuda.format(limit="<=8GiB"), *device)
    assert done.returncode == 0, done.stdout
    done = run_pytest(tmp_path, on_cuda.format(limit="<=1KiB"), *device)
    assert done.returncode == 1
    assert "device_peak_bytes" in done.stdout
