"""Limits on the memory and the time of tests: the plugin of pytest that `@pytest.mark.offprof_limit` needs.

    @pytest.mark.offprof_limit(device_peak_bytes="<=8GiB")
    def test_training_step():
        ...

If the test records steps with `offprof.record` or `offprof.profile`, each recording must be within the limits, and every
figure can have one. Otherwise they are limits on the GPU memory of the process while the test runs, on a real GPU or, with
`--offprof-device virtual:PROFILE`, on a virtual one: `device_peak_bytes`, `device_allocated_peak_bytes` and
`device_reserved_peak_bytes`.

An installed package registers the plugin; otherwise: `pytest -p offprof.pytest_plugin`. Limits are those of `offprof gate`,
which checks them.
"""

from __future__ import annotations

import gc
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from . import recordings
from .errors import OffprofError

_MARKER = "offprof_limit"
_MARKER_HELP = (
    f'{_MARKER}(FIGURE="LIMIT", ...): fail the test if its memory or time is beyond a limit of offprof gate, '
    'such as device_peak_bytes="<=8GiB" or, relative to --offprof-baselines, "<=+0%"'
)

# The figures of a process, by the names of torch.cuda.memory_stats.
_PEAKS = {
    "device_peak_bytes": "requested_bytes.all.peak",
    "device_allocated_peak_bytes": "allocated_bytes.all.peak",
    "device_reserved_peak_bytes": "reserved_bytes.all.peak",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("offprof", "limits on memory and time")
    group.addoption(
        "--offprof-device",
        metavar="virtual[:PROFILE]",
        help="open this virtual GPU before torch is imported, so that tests use CUDA without a GPU",
    )
    group.addoption("--offprof-baselines", metavar="FILE", help="baselines that limits such as <=+0%% are relative to")
    group.addoption(
        "--offprof-update", action="store_true", help="write the baselines of the tests that run; check nothing"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker, and opens the virtual GPU."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("--offprof-update") and not config.getoption("--offprof-baselines"):
        raise pytest.UsageError("--offprof-update needs --offprof-baselines FILE, the file to write")
    device = config.getoption("--offprof-device")
    if device is None:
        return
    from . import virtual_gpu

    kind, _, profile = device.partition(":")
    if kind != "virtual":
        raise pytest.UsageError(f"--offprof-device is virtual or virtual:PROFILE, not {device}")
    try:
        if virtual_gpu.opened_virtual_gpu() is None:
            virtual_gpu.open_virtual_gpu(profile or virtual_gpu.DEFAULT_PROFILE)
    except OffprofError as error:
        raise pytest.UsageError(f"--offprof-device {device}: {error}") from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Runs the test and checks its limits."""
    limits = _limits_of(item)
    if not limits:
        return (yield)
    _begin()
    with recordings.collect() as recorded:
        result = yield
    reports = [_report(recording.measured) for recording in recorded] or [_report(_peaks())]
    for number, report in enumerate(reports, 1):
        key = item.nodeid if len(reports) == 1 else f"{item.nodeid} recording {number}"
        _check(item.config, key, report, limits)
    return result


def _limits_of(item: pytest.Item) -> list[str]:
    """Returns the limits of a test in the notation of `offprof gate --limit`. The nearest marker wins."""
    limits: dict[str, str] = {}
    for marker in item.iter_markers(_MARKER):
        if marker.args or not marker.kwargs:
            pytest.fail(f'{_MARKER} needs figures by name: {_MARKER}(device_peak_bytes="<=8GiB")', pytrace=False)
        for figure, limit in marker.kwargs.items():
            limits.setdefault(figure, str(limit))
    return [figure + limit for figure, limit in limits.items()]


def _cuda() -> Any:
    """Returns torch.cuda if the process has used a GPU, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _begin() -> None:
    """Forgets the peaks of earlier tests, and frees what they left behind."""
    cuda = _cuda()
    if cuda is not None:
        gc.collect()
        cuda.synchronize()
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()


def _peaks() -> dict[str, Any]:
    """Returns the peaks of the process since `_begin`."""
    cuda = _cuda()
    if cuda is None:
        pytest.fail(
            f"{_MARKER}: the test used no GPU and recorded no step. Run pytest with --offprof-device virtual, or record "
            "a step with offprof.record.",
            pytrace=False,
        )
    cuda.synchronize()
    stats = cuda.memory_stats()
    return {figure: stats[name] for figure, name in _PEAKS.items()}


def _report(measured: dict[str, Any]) -> dict[str, Any]:
    """Returns figures as a report that `offprof gate` reads."""
    torch, cuda = sys.modules["torch"], _cuda()
    gpu = None
    if "offprof.virtual_gpu" in sys.modules:
        gpu = sys.modules["offprof.virtual_gpu"].opened_virtual_gpu()
    device = f"virtual:{gpu.state().profile}" if gpu is not None else "host" if cuda is None else "cuda"
    name = "CPU" if cuda is None else cuda.get_device_name()
    environment = {
        "device": device,
        "device_name": name,
        "torch_version": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "times_are_modelled": gpu is not None,
    }
    return {"schema": "offprof.report/1", "command": "run", "measured": measured, "environment": environment}


def _check(config: pytest.Config, key: str, report: dict[str, Any], limits: list[str]) -> None:
    """Lets `offprof gate` check the figures, or write them as a baseline."""
    from .loaded_trace import find_program

    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "test.json"
        figures.write_text(json.dumps(report))
        command = [find_program(), "gate", str(figures)]
        baselines = config.getoption("--offprof-baselines")
        if baselines:
            command += ["--baseline", str(baselines), "--key", key]
        if config.getoption("--offprof-update"):
            command.append("--update")
        for limit in limits:
            command += ["--limit", limit]
        end = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if end.returncode == 0:
        return
    text = (end.stderr if end.returncode != 1 else end.stdout).replace(str(figures), key).strip()
    pytest.fail(_in_words_of_pytest(text, baselines), pytrace=False)


def _in_words_of_pytest(text: str, baselines: Any) -> str:
    """Returns what `offprof gate` printed with this plugin's options instead of its commands.

    The figure comes first, since pytest cuts the line in its summary.
    """
    lines = [line for line in text.splitlines() if not re.search(r"\boffprof (gate|diff) ", line)]
    text = "\n".join(lines).replace("Add --baseline ", "Add --offprof-baselines ")
    if baselines and "gate failed" in text:
        text += f"\nIf intended: pytest --offprof-baselines {shlex.quote(str(baselines))} --offprof-update"
    failed = re.match("gate failed: (.*?); (.*)", text)
    if failed is None:
        return f"{_MARKER}: {text}"
    return f"{failed[2]} ({_MARKER}: {failed[1]} failed){text[failed.end() :]}"
