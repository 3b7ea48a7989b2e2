"""Checks that `offprof simulate` on the recording of a program equals runs of the program, to the byte.

    exactness.py --offprof build/offprof [--device host] [--programs mlp,gan] [--policies offload,trl]

Records each program once, and runs it once under each policy, each in a process of its own. Compares requested and
allocated peak, residents, peak of host memory, and copied bytes; on a virtual GPU also times. A program that fails with
TRL's own class must fail under its rules. Prints a row for each program. Exit status: 0 all
predictions are exact, 1 some are not or a run failed, 2 bad usage.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import programs
from offprof_command import CommandFailed, Offprof

POLICIES = {
    "keep": ("--policy", "keep"),
    "offload": ("--policy", "offload"),
    "trl": ("--policy", "trl"),
    "threshold": ("--policy", "offload", "--threshold", "16KiB"),
    "stash": ("--policy", "offload", "--stash", "5"),
    "prefetch": ("--policy", "offload", "--prefetch", "256KiB"),
    "all": ("--policy", "offload", "--threshold", "4KiB", "--stash", "3", "--prefetch", "1MiB"),
    "trl_stash": ("--policy", "trl", "--stash", "10"),
}
EXACT_KEYS = (
    "device_peak_bytes",
    "device_allocated_peak_bytes",
    "device_resident_bytes",
    "host_peak_bytes",
    "d2h_bytes",
    "h2d_bytes",
)
# Times of a virtual GPU do not depend on the machine.
EXACT_TIMES = ("step_time_ns", "compute_ns", "exposed_ns", "launch_gap_ns", "d2h_busy_ns", "h2d_busy_ns")


def differences(measured: dict[str, Any], predicted: dict[str, Any], has_exact_times: bool = False) -> list[str]:
    """Returns a phrase for each key of `EXACT_KEYS`, and of `EXACT_TIMES`, that differs, with the prediction's error."""
    found = []
    for key in EXACT_KEYS + (EXACT_TIMES if has_exact_times else ()):
        of_run, of_replay = measured.get(key), predicted.get(key)
        if of_run is not None and of_replay is not None and of_run != of_replay:
            found.append(f"{key} {of_replay - of_run:+d} of {of_run}")
        elif (of_run is None) != (of_replay is None):
            found.append(f"{key}: {of_run} measured, {of_replay} predicted")
    return found


def check(offprof: Offprof, program: programs.Program, device: str, policies: Iterable[str]) -> dict[str, list[str]]:
    """Returns what is wrong under each policy; an empty list where the prediction is exact."""
    trace = offprof.folder / f"{program.name}.json.gz"
    trace.unlink(missing_ok=True)
    offprof.run(program, device, *POLICIES["keep"], "-o", str(trace))
    results = {}
    for policy in policies:
        is_refused = device.partition(":")[0] in program.trl_fails and "trl" in POLICIES[policy]
        try:
            measured = offprof.run(program, device, *POLICIES[policy])["measured"]
            if is_refused:
                results[policy] = ["ran, but fails with TRL's own class"]
                continue
            predicted = offprof.simulate(trace, *POLICIES[policy])["predicted"]
            results[policy] = differences(measured, predicted, device.startswith("virtual:"))
        except CommandFailed as error:
            results[policy] = [] if is_refused and "RuntimeError" in str(error) else [str(error)]
    return results


def row(program: programs.Program, results: dict[str, list[str]]) -> str:
    """Returns the row of a program: how many policies are exact, and what is wrong under the others."""
    exact = sum(not wrong for wrong in results.values())
    reasons = [f"{policy}: {', '.join(wrong)}" for policy, wrong in results.items() if wrong]
    return f"{program.name:24} {exact} of {len(results)} exact  {'; '.join(reasons)}".rstrip()


def is_exact(offprof: Offprof, program: programs.Program, device: str, policies: list[str]) -> bool:
    """Checks a program and prints its row."""
    missing = program.missing()
    if missing:
        print(f"{program.name:24} not run: no {missing[0]}; scripts/setup.sh --programs installs it", flush=True)
        return False
    try:
        results = check(offprof, program, device, policies)
    except CommandFailed as error:
        print(f"{program.name:24} not recorded: {error}", flush=True)
        return False
    print(row(program, results), flush=True)
    return not any(results.values())


def names(text: str, known: Iterable[str], what: str) -> list[str]:
    """Splits a list at its commas. Exits with status 2 if a name is not known."""
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            print(f"exactness.py: no such {what}: {name}\n  There are {', '.join(known)}.", file=sys.stderr)
            sys.exit(2)
    return chosen


def main() -> int:
    """Runs the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    all_programs = [program.name for program in programs.PROGRAMS]
    parser.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    parser.add_argument("--device", default="host", help="device of offprof run (default: %(default)s)")
    parser.add_argument("--programs", default=",".join(all_programs), metavar="NAME,...", help="default: all")
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="NAME,...", help="default: all")
    arguments = parser.parse_args()
    chosen = names(arguments.programs, all_programs, "program")
    policies = names(arguments.policies, POLICIES, "policy")
    with tempfile.TemporaryDirectory() as folder:
        offprof = Offprof(arguments.offprof.resolve(), Path(folder))
        exact = [is_exact(offprof, programs.program(name), arguments.device, policies) for name in chosen]
    print(f"{sum(exact)} of {len(exact)} programs exact on {arguments.device}")
    return 0 if all(exact) else 1


if __name__ == "__main__":
    sys.exit(main())
