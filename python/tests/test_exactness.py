"""A recording predicts the memory and the copies of the same script under other policies, to the byte.

Each policy is run in a process of its own, with a recording of its own: the prediction comes from another process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAMS

POLICIES = {
    "keep": ["--policy", "keep"],
    "offload": ["--policy", "offload"],
    "trl": ["--policy", "trl"],
    "threshold": ["--threshold", "16KiB"],
    "stash": ["--stash", "5"],
    "prefetch": ["--prefetch", "256KiB"],
    "threshold, stash and prefetch": ["--threshold", "4KiB", "--stash", "3", "--prefetch", "1MiB"],
    "trl with another stash": ["--policy", "trl", "--stash", "10"],
}
EXACT = [
    "device_peak_bytes",
    "device_resident_bytes",
    "device_allocated_peak_bytes",
    "host_peak_bytes",
    "d2h_bytes",
    "h2d_bytes",
]

Report = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("device", ["host", "virtual:h200"])
@pytest.mark.parametrize("program", ["mlp", "transformer", "gan"])
def test_predicts_every_policy_to_the_byte(program: str, device: str, tmp_path: Path, report_of: Report) -> None:
    script = PROGRAMS / f"{program}.py"
    trace = tmp_path / "trace.json.gz"
    report_of("run", script, "--device", device, "--policy", "keep", "-o", trace)
    for name, flags in POLICIES.items():
        measured = report_of("run", script, "--device", device, *flags)
        predicted = report_of("simulate", trace, *flags)["predicted"]
        assert measured["inexact"] == [], name
        differences = {
            key: (measured["measured"].get(key), predicted.get(key))
            for key in EXACT
            if measured["measured"].get(key) != predicted.get(key)
        }
        assert differences == {}, name
