"""Checks that the way which `offprof advise` recommends beats or equals each single way, and measures what it said.

    advising.py --offprof build/offprof [--device virtual:h200] [--programs mlp,cnn,llama]

Of each program, the budget is halfway between the memory with nothing offloaded and the least memory that `tune` finds.
The single ways are those of `tune` and `simulate` for the same budget: the best policy of the tuner, the best without a
plan, and the presets. They are of the program with PyTorch's default allocator settings; `advise` may also choose
others. The recommended way is run once more.

Exit status: 0 all is well, 1 something is not.
"""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import exactness
import programs
from offprof_command import CommandFailed, Offprof

DEFAULT = ("mlp", "cnn", "resnet", "llama", "gpt2")
PRESETS = ("keep", "offload", "trl", "trl-trainer")
MEASURES = ("device_peak_bytes", "device_reserved_peak_bytes", "step_time_ns")
EXPANDABLE = "expandable_segments:True"


def taken(metrics: dict[str, Any]) -> int:
    """Returns the device memory that a step takes."""
    return int(metrics.get("device_reserved_peak_bytes", metrics["device_peak_bytes"]))


def single_ways(offprof: Offprof, trace: Path, budget: int) -> dict[str, dict[str, Any]]:
    """Returns the predicted metrics of the single ways that are within the budget. Raises CommandFailed."""
    ways = {name: offprof.simulate(trace, "--policy", name)["predicted"] for name in PRESETS}
    for name, flags in {"tuned": (), "tuned without a plan": ("--no-plan",)}.items():
        chosen = offprof.tune(trace, "--memory-budget", f"{budget}B", *flags)["chosen"]
        ways[name] = chosen["predicted"]
    return {name: metrics for name, metrics in ways.items() if taken(metrics) <= budget}


def check(offprof: Offprof, program: programs.Program, device: str) -> dict[str, list[str]]:
    """Returns what is wrong; an empty list where all is well. Raises CommandFailed."""
    trace = offprof.folder / "trace.json.gz"
    offprof.run(program, device, "--policy", "keep", "--transforms", "recompute", "-o", str(trace))
    most = taken(offprof.simulate(trace, "--policy", "keep")["predicted"])
    least = taken(offprof.tune(trace, "--max-slowdown", "10000%")["chosen"]["predicted"])
    budget = (most + least) // 2
    advice = offprof.advise(program, device, "--memory-budget", f"{budget}B", "-o", "advised.json")
    recommended = advice["recommended"]
    metrics = recommended.get("measured", recommended["predicted"])
    slower = [
        f"{name} takes {way['step_time_ns']} ns, the recommended way {metrics['step_time_ns']}"
        for name, way in single_ways(offprof, trace, budget).items()
        if way["step_time_ns"] < metrics["step_time_ns"]
    ]
    if taken(metrics) > budget:
        slower.append(f"the recommended way takes {taken(metrics) - budget} bytes too many")
    if recommended["expandable_segments"]:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = EXPANDABLE
    try:
        policy = "keep" if recommended["policy"]["name"] == "keep" else "advised.json"
        flags = shlex.split(recommended["flags"])
        measured = offprof.run(program, device, *flags, "--policy", policy)["measured"]
    finally:
        os.environ.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    predicted = recommended["predicted"]
    other = [
        f"{key}: {measured[key]}, predicted {predicted[key]}" for key in MEASURES if measured[key] != predicted[key]
    ]
    return {"single ways": slower, "run": other}


def main() -> int:
    """Runs the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    parser.add_argument("--device", default="virtual:h200", help="virtual GPU (default: %(default)s)")
    parser.add_argument("--programs", default=",".join(DEFAULT), metavar="NAME,...", help="default: %(default)s")
    arguments = parser.parse_args()
    chosen = exactness.names(arguments.programs, [each.name for each in programs.PROGRAMS], "program")
    good = 0
    for name in chosen:
        program = programs.program(name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = check(Offprof(arguments.offprof.resolve(), Path(folder)), program, arguments.device)
            except CommandFailed as error:
                results = {"all": [str(error)]}
        print(exactness.row(program, results), flush=True)
        good += not any(results.values())
    print(f"advice on {good} of {len(chosen)} programs beats or equals each single way on {arguments.device}")
    return 0 if good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
