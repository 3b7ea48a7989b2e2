"""Compares `offprof simulate --policy trl-trainer` with TRL's own activation offloading, over the virtual GPU.

    trl_witness.py --offprof build/offprof [--profile h200]

Records SFTTrainer without offloading and simulates the preset `trl-trainer`. Then trains SFTTrainer with its own
`activation_offloading=True` and reads `torch.cuda.memory_stats`. Requested, allocated and reserved peak have to be
equal. Exit status: 0 equal, 1 not equal.
"""

import argparse
import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import programs
from offprof_command import Offprof, offline_environment

# Steps of TRL's own run: residents and the allocator's blocks no longer change.
STEPS = 8
# Keys of torch.cuda.memory_stats and of a report of offprof.
PEAKS = {
    "requested": ("requested_bytes.all.peak", "device_peak_bytes"),
    "allocated": ("allocated_bytes.all.peak", "device_allocated_peak_bytes"),
    "reserved": ("reserved_bytes.all.peak", "device_reserved_peak_bytes"),
}
# Runs in a process of its own: the virtual GPU has to be opened before torch is imported.
TRAIN_ON_VIRTUAL_GPU = """
import json, runpy, sys
from offprof.virtual_gpu import open_virtual_gpu
open_virtual_gpu(sys.argv[1])
del sys.argv[:2]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
import torch
print(json.dumps(torch.cuda.memory_stats()))
"""


def peaks_of_trl(offprof: Offprof, program: programs.Program, profile: str) -> dict[str, int]:
    """Returns the peaks, in bytes, of TRL's own offloading."""
    flags = ["--device", "cuda", "--steps", str(STEPS), "--activation-offloading"]
    environment = offline_environment(offprof.folder)
    environment["PYTHONPATH"] = str(offprof.executable.parent / "python")
    ended = subprocess.run(
        [sys.executable, "-c", TRAIN_ON_VIRTUAL_GPU, profile, str(program.path), *program.arguments, *flags],
        cwd=offprof.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        raise SystemExit(f"SFTTrainer failed:\n{ended.stderr}")
    stats = json.loads(ended.stdout.splitlines()[-1])
    return {name: stats[key] for name, (key, _) in PEAKS.items()}


def predicted_peaks(offprof: Offprof, program: programs.Program, profile: str) -> dict[str, int]:
    """Returns the peaks, in bytes, that the preset `trl-trainer` has on a recording without offloading."""
    trace = offprof.folder / "sft.json.gz"
    offprof.run(program, f"virtual:{profile}", "--policy", "keep", "-o", str(trace))
    predicted = offprof.simulate(trace, "--policy", "trl-trainer")["predicted"]
    return {name: predicted[key] for name, (_, key) in PEAKS.items()}


def main() -> int:
    """Runs the comparison. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    parser.add_argument("--profile", default="h200", help="GPU profile (default: %(default)s)")
    arguments = parser.parse_args()
    program = programs.program("sft_trainer")
    with tempfile.TemporaryDirectory() as folder:
        offprof = Offprof(arguments.offprof.resolve(), Path(folder))
        predicted = predicted_peaks(offprof, program, arguments.profile)
        measured = peaks_of_trl(offprof, program, arguments.profile)
    print(f"SFTTrainer of trl {importlib.metadata.version('trl')} on virtual:{arguments.profile}, peaks in bytes")
    print(f"{'':12}{'simulated':>16}{'TRL itself':>16}{'difference':>14}")
    for name, value in predicted.items():
        print(f"{name:12}{value:16}{measured[name]:16}{value - measured[name]:+14}")
    return 0 if predicted == measured else 1


if __name__ == "__main__":
    sys.exit(main())
