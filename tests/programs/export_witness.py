"""Compares the figures of `offprof export` with the engines that the code is exported to, over a virtual GPU.

    export_witness.py --offprof build/offprof [--device virtual:h200] [--engines trl,torchtune,pytorch]

Records each program once without offloading, and exports policies. Trains the program with the exported code in its own
loop and reads PyTorch's own peaks of requested and allocated bytes.

- trl, torchtune: the peaks are those that `export` printed.
- pytorch: the peaks are those that `export --record` printed.

Engines that are not installed are skipped, with a line that says so. Exit status: 0 all equal, 1 some are not, 77 no
engine is installed, so nothing was compared.
"""

import argparse
import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import exactness
import programs
from offprof_command import CommandFailed, Offprof, offline_environment

ENGINES = ("trl", "torchtune", "pytorch")
PACKAGES = {"trl": "trl", "torchtune": "torchtune", "pytorch": "torch"}
# A module of each program that a policy keeps on the device.
KEPT = {"mlp": "2", "llama": "model.layers.1*"}
# Every second of the first saved tensors is in the plan.
PLANNED = 12
PEAKS = ("device_peak_bytes", "device_allocated_peak_bytes")
# The first optimizer steps make the states of the optimizer.
STEPS = 5
# CTest counts this exit status as skipped.
NOTHING_COMPARED = 77


def policies(program: str) -> dict[str, dict[str, Any]]:
    """Returns the policies that are exported for TRL and torchtune."""
    kept = [{"module": KEPT[program], "placement": "device"}]
    return {
        "defaults": {"scheduler": "trl", "threshold_bytes": 1024, "stash_count": 5},
        "threshold": {"threshold_bytes": 16384, "stash_count": 2, "prefetch_bytes": 1 << 20},
        "rules": {"threshold_bytes": 1024, "stash_count": 3, "rules": kept},
        "plan": {"tensors": list(range(0, PLANNED, 2))},
    }


def train(offprof: Offprof, program: programs.Program, device: str, code: Path) -> dict[str, int]:
    """Trains the program with the exported code. Returns PyTorch's peaks in bytes. Raises CommandFailed."""
    outcome = offprof.folder / "outcome.json"
    command = [str(offprof.executable), "exec", "--device", device, "--", sys.executable]
    command += [str(programs.FOLDER / "with_export.py"), "--code", str(code), "--program", str(program.path)]
    command += ["--outcome", str(outcome), "--device", "cuda", "--steps", str(STEPS), *program.arguments]
    ended = subprocess.run(
        command,
        cwd=offprof.folder,
        env=offline_environment(offprof.folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=offprof.seconds,
    )
    if ended.returncode != 0:
        raise CommandFailed(f"status {ended.returncode} of {shlex.join(command)}:\n{ended.stderr}")
    result: dict[str, int] = json.loads(outcome.read_text(encoding="utf-8"))
    return result


def differences(peaks: dict[str, int], predicted: dict[str, Any]) -> list[str]:
    """Returns a phrase for each peak that differs from the prediction."""
    return [
        f"{key} {predicted.get(key, 0) - peaks[key]:+d} of {peaks[key]}"
        for key in PEAKS
        if predicted.get(key) != peaks[key]
    ]


def check_hooks(
    offprof: Offprof, program: programs.Program, device: str, trace: Path, engine: str
) -> dict[str, list[str]]:
    """Exports policies to TRL or torchtune. Returns what is wrong under each. Raises CommandFailed."""
    tuned = offprof.folder / "tuned.json"
    offprof.tune(trace, "--max-slowdown", "10000%", "-o", str(tuned))
    fingerprints = json.loads(tuned.read_text(encoding="utf-8"))
    known = {key: fingerprints[key] for key in ("schema", "trace_fingerprint", "saved_fingerprint")}
    code = offprof.folder / "exported.py"
    for name, policy in policies(program.name).items():
        document = {**known, "policy": {"name": name, **policy}}
        (offprof.folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    results = {}
    for name in policies(program.name):
        report = offprof.export(f"{name}.json", trace, engine, "-o", str(code))
        results[f"{engine} {name}"] = differences(train(offprof, program, device, code), report["engine_predicted"])
    return results


def check_pytorch(offprof: Offprof, program: programs.Program, device: str, trace: Path) -> dict[str, list[str]]:
    """Exports policies to PyTorch. Returns what is wrong under each. Raises CommandFailed."""
    rules = [{"op": "aten::addmm", "placement": "recompute"}, {"op": "aten::mm", "placement": "recompute"}]
    placements = {"offload": [], "recompute": rules}
    results = {}
    for name, placement in placements.items():
        policy = {"threshold_bytes": None if placement else 0, "rules": placement}
        (offprof.folder / f"{name}.json").write_text(
            json.dumps({"schema": "offprof.policy/1", "policy": policy}), encoding="utf-8"
        )
        code = offprof.folder / f"{name}.py"
        report = offprof.export(f"{name}.json", trace, "pytorch", "--record", "-o", str(code))
        results[f"pytorch {name}"] = differences(train(offprof, program, device, code), report["engine_measured"])
    return results


def check(offprof: Offprof, program: programs.Program, device: str, engines: list[str]) -> dict[str, list[str]]:
    """Returns what is wrong with each export; an empty list where everything is equal. Raises CommandFailed."""
    trace = offprof.folder / "trace.json.gz"
    offprof.run(program, device, "--policy", "keep", "--transforms", "recompute", "-o", str(trace))
    results: dict[str, list[str]] = {}
    for engine in engines:
        if engine == "pytorch":
            results |= check_pytorch(offprof, program, device, trace)
        else:
            results |= check_hooks(offprof, program, device, trace, engine)
    return results


def main() -> int:
    """Runs the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    parser.add_argument("--device", default="virtual:h200", help="device of the recording (default: %(default)s)")
    parser.add_argument("--programs", default=",".join(KEPT), metavar="NAME,...", help="default: %(default)s")
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="NAME,...", help="default: %(default)s")
    arguments = parser.parse_args()
    engines = exactness.names(arguments.engines, ENGINES, "engine")
    for engine in [each for each in engines if importlib.util.find_spec(PACKAGES[each]) is None]:
        print(f"skipped: {engine} is not installed")
        engines.remove(engine)
    if not engines:
        return NOTHING_COMPARED
    exact = 0
    chosen = exactness.names(arguments.programs, KEPT, "program")
    for name in chosen:
        program = programs.program(name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = check(Offprof(arguments.offprof.resolve(), Path(folder)), program, arguments.device, engines)
            except CommandFailed as error:
                results = {"all": [str(error)]}
        print(exactness.row(program, results), flush=True)
        exact += not any(results.values())
    print(f"{exact} of {len(chosen)} programs exact on {arguments.device}")
    return 0 if exact == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
