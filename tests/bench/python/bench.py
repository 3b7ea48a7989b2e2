"""Runs the benchmarks of Python programs and prints a table.

    bench.py --offprof build/offprof

Each benchmark is a process of its own. docs/results/benchmarks.md describes them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def row(name: str, figures: str) -> None:
    """Prints a line of the table."""
    print(f"{name:<44}{figures}", flush=True)


def _python(offprof: Path, script: str, *arguments: str) -> Any:
    """Runs a script of this folder and returns the JSON of its last line."""
    environment = {**os.environ, "PYTHONPATH": str(offprof.parent / "python"), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, str(FOLDER / script), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise SystemExit(f"{script} failed:\n{ended.stderr}")
    return json.loads(ended.stdout.splitlines()[-1])


def saved_tensors(offprof: Path) -> Iterator[tuple[str, str]]:
    """Yields the cost of a saved tensor by device, bytes of the tensor, and way."""
    for device, elements in (("host", 4), ("virtual:h200", 4), ("virtual:h200", 1024)):
        costs = _python(offprof, "saved_tensor.py", device, str(elements))
        for way, microseconds in costs.items():
            ratio = f"  trl takes {costs['trl'] / microseconds:.1f} times that" if way.startswith("offprof") else ""
            yield f"python_saved_tensor/{device}/{4 * elements} B/{way}", f"{microseconds:6.2f} us{ratio}"


def recorded_steps(offprof: Path) -> Iterator[tuple[str, str]]:
    """Yields the time of a recorded step by device."""
    for device in ("host", "virtual:h200"):
        step = _python(offprof, "recorded_step.py", device)
        yield (
            f"python_recorded_step/{device}",
            f"{step['recorded_ms']:6.1f} ms  {step['ratio']:.2f} times the {step['plain_ms']:.1f} ms unrecorded",
        )


def large_model(offprof: Path) -> Iterator[tuple[str, str]]:
    """Yields the time and the host memory of recording 7 billion parameters."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(offprof), "run", "--python", sys.executable, "--device", "virtual:h200", "--policy", "keep"]
        command += ["-o", f"{folder}/7b.json.gz", str(FOLDER / "llama_7b.py")]
        began = time.monotonic()
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{ended.stderr}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # of the largest process so far
    yield "python_7b/virtual:h200", f"{seconds:6.1f} s   {peak / 1e6:.0f} MB of host memory in the largest process"


def main() -> None:
    """Runs all benchmarks."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    offprof = options.parse_args().offprof.resolve()
    for benchmark in (large_model, recorded_steps, saved_tensors):  # memory first: see large_model
        for name, figures in benchmark(offprof):
            row(name, figures)


if __name__ == "__main__":
    main()
