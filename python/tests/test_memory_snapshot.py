"""`offprof export --to memory-snapshot` and `offprof import --from memory-snapshot`.

PyTorch is the witness: its own snapshot of the same step on the virtual GPU, and its visualizer.
"""

from __future__ import annotations

import json
import pickle
import pickletools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, build_folder
from torch.cuda import _memory_viz

# Trains as the recorded program does, and dumps the last step.
PROGRAM = """
import sys
import torch

def main():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = torch.randn(512, 1024, device="cuda")
    for step in range(20):
        if step == 19 and len(sys.argv) > 1:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.memory._record_memory_history(max_entries=100000)
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if len(sys.argv) > 1:
        import json
        stats = torch.cuda.memory_stats()
        torch.cuda.memory._dump_snapshot(sys.argv[1])
        json.dump(dict(stats), open(sys.argv[1] + ".json", "w"))

main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `t.json`, offprof's trace; `exported.pickle`; and `torch.pickle`, PyTorch's snapshot."""
    path = tmp_path_factory.mktemp("snapshots")
    (path / "train.py").write_text(PROGRAM)
    offprof = build_folder() / "offprof"
    device = ("--device", "virtual:h100-80gb")
    for command in (
        ("run", "train.py", "--python", sys.executable, *device, "-q", "-o", "t.json"),
        ("export", "t.json", "--to", "memory-snapshot", "-o", "exported.pickle"),
        ("exec", *device, "--", sys.executable, "train.py", "torch.pickle"),
    ):
        end = subprocess.run([offprof, *command], cwd=path, capture_output=True, text=True, check=False)
        assert end.returncode == 0, end.stderr
    return path


def loaded(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        snapshot: dict[str, Any] = pickle.load(file)
    return snapshot


def live_peak(snapshot: dict[str, Any]) -> int:
    """The peak of live bytes: of the blocks at the end without the changes of the entries, and of the changes."""
    change = most = 0
    for entry in snapshot["device_traces"][0]:
        change += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"]
        most = max(most, change)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    at_end = sum(block["requested_size"] for block in blocks if block["state"] != "inactive")
    return at_end - change + most


def test_has_the_fields_of_pytorchs_snapshot(folder: Path) -> None:
    ours, theirs = loaded(folder / "exported.pickle"), loaded(folder / "torch.pickle")
    # PyTorch's entries have more keys than its visualizer reads, and they differ between its versions.
    assert set(ours) <= set(theirs)
    segment, block = theirs["segments"][0], theirs["segments"][0]["blocks"][0]
    assert set(ours["segments"][0]) <= set(segment) | {"segment_pool_id"}
    assert set(ours["segments"][0]["blocks"][0]) <= set(block)
    assert set(ours["device_traces"][0][0]) <= set(theirs["device_traces"][0][0])


def test_peaks_are_those_of_pytorchs_snapshot(folder: Path) -> None:
    ours, theirs = loaded(folder / "exported.pickle"), loaded(folder / "torch.pickle")
    stats = json.loads((folder / "torch.pickle.json").read_text())
    assert live_peak(ours) == live_peak(theirs) == stats["requested_bytes.all.peak"]


def test_allocations_are_those_of_pytorchs_snapshot_in_its_order(folder: Path) -> None:
    def sizes(snapshot: dict[str, Any], action: str) -> list[int]:
        return [entry["size"] for entry in snapshot["device_traces"][0] if entry["action"] == action]

    ours, theirs = loaded(folder / "exported.pickle"), loaded(folder / "torch.pickle")
    assert sizes(ours, "alloc") == sizes(theirs, "alloc")


@pytest.mark.parametrize("plot", [_memory_viz.trace_plot, _memory_viz.segment_plot])
def test_pytorchs_visualizer_makes_a_page_of_it(folder: Path, plot: Callable[[Any], str]) -> None:
    page = plot(loaded(folder / "exported.pickle"))
    assert "<script" in page


def test_frames_name_the_line_of_the_program(folder: Path) -> None:
    entries = loaded(folder / "exported.pickle")["device_traces"][0]
    frames = [frame for entry in entries for frame in entry["frames"]]
    line = PROGRAM.splitlines().index("        model(batch).square().mean().backward()") + 1
    assert {"filename": "train.py", "line": line} in [
        {"filename": frame["filename"], "line": frame["line"]} for frame in frames
    ]


def test_an_imported_snapshot_has_the_peaks_of_the_run(folder: Path, report_of: Callable[..., dict[str, Any]]) -> None:
    stats = json.loads((folder / "torch.pickle.json").read_text())
    path = folder / "torch.pickle"
    report = report_of("import", "--from", "memory-snapshot", path, "-o", folder / "imported.json")
    assert report["measured"]["device_peak_bytes"] == stats["requested_bytes.all.peak"]
    assert report["measured"]["device_reserved_peak_bytes"] == stats["reserved_bytes.all.peak"]
    replayed = report_of("simulate", folder / "imported.json", "--policy", "keep", "--link", "1GB/s")
    assert replayed["predicted"]["device_peak_bytes"] == stats["requested_bytes.all.peak"]


def test_an_imported_snapshot_makes_a_baseline_and_a_report(folder: Path, offprof: Run, tmp_path: Path) -> None:
    for command in (
        ("import", "--from", "memory-snapshot", folder / "torch.pickle", "-o", "t.json"),
        ("gate", "t.json", "--update", "--baseline", "baseline.json"),
        ("gate", "t.json", "--baseline", "baseline.json"),
        ("report", "t.json", "-o", "report.html"),
        ("view", "t.json"),
    ):
        end = offprof(*command)
        assert end.returncode == 0, (command, end.stderr)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_runs_nothing_of_a_pickle(offprof: Run, tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    empty: dict[str, Any] = {"segments": [], "device_traces": []}
    snapshots: list[object] = [{"segments": [], "device_traces": [[Harmful()]]}, Harmful(), empty, 3]
    for snapshot in snapshots:
        (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot))
        end = offprof("import", "--from", "memory-snapshot", "s.pickle", "-o", "t.json")
        assert end.returncode == 2, end.stderr
    assert not (tmp_path / "executed").exists()
    assert not (tmp_path / "t.json").exists()


def test_says_that_a_snapshot_without_history_has_no_peak(offprof: Run, tmp_path: Path) -> None:
    blocks = [{"size": 512, "requested_size": 500, "state": "active_allocated", "frames": []}]
    segments = [{"device": 0, "address": 4096, "total_size": 2 << 20, "blocks": blocks}]
    (tmp_path / "s.pickle").write_bytes(pickle.dumps({"segments": segments, "device_traces": [[]]}))
    end = offprof("import", "--from", "memory-snapshot", "s.pickle", "-o", "t.json")
    assert end.returncode == 0, end.stderr
    assert "its peak is what was allocated when it was written" in " ".join((end.stdout + end.stderr).split())


def test_has_only_the_opcodes_that_the_visualizer_reads(folder: Path) -> None:
    known = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "NONE"}
    known |= {
        "NEWTRUE",
        "NEWFALSE",
        "TUPLE2",
        "APPENDS",
        "SETITEMS",
        "BINPUT",
        "LONG_BINPUT",
        "BINGET",
        "LONG_BINGET",
        "STOP",
    }
    data = (folder / "exported.pickle").read_bytes()
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= known
