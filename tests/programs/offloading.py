"""Checks that programs with `offprof.OffloadActivations` in their loops reach what `offprof simulate` predicts.

    offloading.py --offprof build/offprof [--device host] [--programs mlp,llama] [--policies trl,plan]

Records each program once, and trains it under each policy in its own loop. Compares the report with the prediction, to
the byte; on a virtual GPU also the peaks that PyTorch itself counts; on `host` also the gradients of the first steps
with those of the program as it is, bit by bit. Prints a row for each program. Exit status: 0 all equal, 1 some are not,
2 bad usage.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import exactness
import programs
from offprof_command import CommandFailed, Offprof, offline_environment

PROGRAMS = ("mlp", "cnn", "llama", "gpt2", "lora", "hf_trainer")
RULES = [
    {"op": "*gelu*", "placement": "device"},
    {"module": "*.1", "max_bytes": 65536, "placement": "device"},
    {"rank": 2, "min_bytes": 4096, "placement": "host"},
]
# Settings of OffloadActivations; `rules` and `plan` are made from the recording.
POLICIES: dict[str, dict[str, Any]] = {
    "offload": {"policy": "offload"},
    "trl": {"policy": "trl"},
    "all": {"policy": "offload", "threshold_bytes": 4096, "stash_count": 3, "prefetch_bytes": 1 << 20},
    "rules": {"policy": "offload", "threshold_bytes": 8192, "prefetch_bytes": 1 << 18, "rules": RULES},
    "plan": {"policy": "offload", "prefetch_bytes": 1 << 18},
}
EXACT_KEYS = ("device_peak_bytes", "device_resident_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes")
# The first steps are observed, and the first optimizer steps make the states of the optimizer.
STEPS = 8
# Steps whose gradients are compared.
COMPARED_STEPS = 3


def write_policy(path: Path, name: str, tuned: dict[str, Any], saved: int) -> None:
    """Writes the policy of that name. `tuned` is the content of a policy file of the recording, which saves so many."""
    policy = {key: value for key, value in POLICIES[name].items() if key != "policy"}
    if POLICIES[name]["policy"] == "trl":
        policy = {"scheduler": "trl", "threshold_bytes": 1024, "stash_count": 5}
    if name == "plan":
        policy["tensors"] = list(range(0, saved, 2))
    known = {key: tuned[key] for key in ("schema", "trace_fingerprint", "saved_fingerprint")}
    path.write_text(json.dumps({**known, "policy": {"name": name, **policy}}), encoding="utf-8")


def train(offprof: Offprof, program: programs.Program, device: str, settings: dict[str, Any] | None) -> dict[str, Any]:
    """Trains the program in its own loop and returns the outcome. Raises CommandFailed."""
    outcome = offprof.folder / "outcome.json"
    command = [sys.executable, str(programs.FOLDER / "with_offloading.py"), str(outcome), json.dumps(settings)]
    command += [str(program.path), "--device", "cpu" if device == "host" else "cuda", "--steps", str(STEPS)]
    if device != "host":
        command = [str(offprof.executable), "exec", "--device", device, "--", *command]
    environment = offline_environment(offprof.folder)
    environment["PYTHONPATH"] = str(offprof.executable.parent / "python")
    ended = subprocess.run(
        [*command, *program.arguments],
        cwd=offprof.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=offprof.seconds,
    )
    if ended.returncode != 0:
        raise CommandFailed(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else "no message")
    result: dict[str, Any] = json.loads(outcome.read_text(encoding="utf-8"))
    return result


def differences(outcome: dict[str, Any], predicted: dict[str, Any]) -> list[str]:
    """Returns a phrase for each figure of the outcome that differs from the prediction."""
    measured = outcome["report"]["measured"]
    if measured is None:
        return ["no whole step was measured"]
    found = [
        f"{key} {predicted.get(key, 0) - measured.get(key, 0):+d} of {measured.get(key)}"
        for key in EXACT_KEYS
        if measured.get(key) != predicted.get(key)
    ]
    found += [
        f"PyTorch's {key} {predicted.get(key, 0) - peak:+d} of {peak}"
        for key, peak in outcome["peaks"].items()
        if predicted.get(key) != peak
    ]
    return found


def check(offprof: Offprof, program: programs.Program, device: str, policies: Iterable[str]) -> dict[str, list[str]]:
    """Returns what is wrong under each policy; an empty list where everything is equal. Raises CommandFailed."""
    trace, tuned = offprof.folder / "trace.json.gz", offprof.folder / "tuned.json"
    trace.unlink(missing_ok=True)
    recorded = offprof.run(program, device, "--policy", "keep", "-o", str(trace))
    offprof.tune(trace, "--max-slowdown", "10000%", "-o", str(tuned))
    known = json.loads(tuned.read_text(encoding="utf-8"))
    saved = sum(entry["tensors"] for entry in recorded["ledger"])
    plain = train(offprof, program, device, None)["gradients"][:COMPARED_STEPS]
    results = {}
    for name in policies:
        policy = offprof.folder / f"{name}.json"
        write_policy(policy, name, known, saved)
        try:
            outcome = train(offprof, program, device, {"policy": str(policy)})
            results[name] = differences(outcome, offprof.simulate(trace, "--policy", str(policy))["predicted"])
            if device == "host" and outcome["gradients"][:COMPARED_STEPS] != plain:
                results[name].append("the gradients differ")
        except CommandFailed as error:
            results[name] = [str(error)]
    return results


def main() -> int:
    """Runs the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offprof", type=Path, required=True, help="the program offprof")
    parser.add_argument("--device", default="host", help="device of the recording (default: %(default)s)")
    parser.add_argument("--programs", default=",".join(PROGRAMS), metavar="NAME,...", help="default: %(default)s")
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="NAME,...", help="default: %(default)s")
    arguments = parser.parse_args()
    chosen = exactness.names(arguments.programs, [each.name for each in programs.PROGRAMS], "program")
    policies = exactness.names(arguments.policies, POLICIES, "policy")
    exact = 0
    for name in chosen:
        program = programs.program(name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                results = check(Offprof(arguments.offprof.resolve(), Path(folder)), program, arguments.device, policies)
            except CommandFailed as error:
                results = {policy: [str(error)] for policy in policies}
        print(exactness.row(program, results), flush=True)
        exact += not any(results.values())
    print(f"{exact} of {len(chosen)} programs exact on {arguments.device}")
    return 0 if exact == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
