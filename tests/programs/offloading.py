"""Checks that programs with `offprof.OffloadActivations` in their loops reach what `offprof simulate` predicts.

    offloading.py --offprof build/offprof [--device host] [--programs mlp,llama] [--policies trl,plan]

Records each program once, and trains it under each policy in its own loop. Compares the report with the prediction, to
the byte; on a virtual GPU also the peaks that PyTorch itself counts; on `host` also the gradients of each step with
those of the program as it is, bit by bit. Prints a row for each program and policy. Exit status: 0 all equal, 1 some
are not, 2 bad usage.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
MIXED_RULES = [
    {"op": "*dropout*", "placement": "recompute"},
    {"op": "*gelu*", "placement": "recompute"},
    {"op": "*norm*", "placement": "recompute"},
]
# Policies, and members of their files. `tuned` is a policy file of `offprof tune`; `plan` names every second tensor.
POLICIES: dict[str, dict[str, Any]] = {
    "threshold": {"threshold_bytes": 16384},
    "tuned": {},
    "trl": {"scheduler": "trl", "threshold_bytes": 1024, "stash_count": 5},
    "ahead": {"threshold_bytes": 4096, "stash_count": 3, "prefetch_bytes": 1 << 20},
    "rules": {"threshold_bytes": 8192, "prefetch_bytes": 1 << 18, "rules": RULES},
    "plan": {"prefetch_bytes": 1 << 18},
    "encoded": {"rules": [{"dtype": "float32", "min_bytes": 4096, "placement": "cast:bfloat16+host"}]},
    "compressed": {"rules": [{"min_bytes": 8192, "placement": "compress"}]},
    "recomputed": {"threshold_bytes": 16384, "rules": [{"min_bytes": 2048, "placement": "recompute"}]},
    "mixed": {"threshold_bytes": 8192, "prefetch_bytes": 1 << 18, "rules": MIXED_RULES},
}
LOSSY = ("encoded",)
# Options of `offprof simulate`: the trace does not have the speed of compression, on which no memory depends.
SIMULATE_FLAGS = {"compressed": ("--disk-bandwidth", "1GB/s")}
EXACT_KEYS = ("device_peak_bytes", "device_resident_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes")
# The first steps are observed, and the first optimizer steps make the states of the optimizer.
STEPS = 8


@dataclass
class Outcome:
    """A training under one policy. Peaks are those of the device, in bytes; None: not known."""

    measured_peak: int | None = None
    predicted_peak: int | None = None
    description: str = ""  # of the policy
    gradients: str = ""  # whether they are those of plain training
    wrong: list[str] = field(default_factory=list)

    def row(self, program: str, policy: str) -> str:
        """Returns a row of the table."""
        peaks = [self.measured_peak, self.predicted_peak]
        if self.measured_peak is not None and self.predicted_peak is not None:
            peaks.append(self.predicted_peak - self.measured_peak)
        figures = "".join(f"{'' if peak is None else peak:>14}" for peak in [*peaks, None][:3])
        return f"{program:<12}{policy:<12}{figures}  {self.gradients:<10} {self.description or '; '.join(self.wrong)}"


HEADER = f"{'program':<12}{'policy':<12}{'measured':>14}{'predicted':>14}{'difference':>14}  {'gradients':<10} settings"


def write_policy(path: Path, name: str, tuned: dict[str, Any], saved: int) -> None:
    """Writes the policy of that name. `tuned` is the content of a policy file of the recording, which saves so many."""
    policy = {"name": name, **POLICIES[name]}
    if name == "tuned":
        policy = tuned["policy"]
    if name == "plan":
        policy["tensors"] = list(range(0, saved, 2))
    known = {key: tuned[key] for key in ("schema", "trace_fingerprint", "saved_fingerprint")}
    path.write_text(json.dumps({**known, "policy": policy}), encoding="utf-8")


def tuned_policy(offprof: Offprof, trace: Path) -> dict[str, Any]:
    """Returns the policy file of a budget between the least memory and that of nothing offloaded."""
    path = offprof.folder / "tuned.json"
    least = offprof.tune(trace, "--max-slowdown", "10000%")
    predicted = [least[policy]["predicted"] for policy in ("keep", "chosen")]
    # A caching allocator takes more of the device than the peak.
    taken = [figures.get("device_reserved_peak_bytes", figures["device_peak_bytes"]) for figures in predicted]
    offprof.tune(trace, "--memory-budget", f"{sum(taken) // 2}B", "-o", str(path))
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


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


def compare(outcome: dict[str, Any], predicted: dict[str, Any], plain: list[str] | None) -> Outcome:
    """Compares a training with its prediction and, if they are known, with the gradients of plain training."""
    report = outcome["report"]
    result = Outcome(predicted_peak=predicted["device_peak_bytes"], description=report["policy"])
    result.measured_peak = (report["measured"] or {}).get("device_peak_bytes")
    result.wrong = differences(outcome, predicted)
    if plain is not None:
        is_equal = outcome["gradients"] == plain
        result.gradients = f"{len(plain)} equal" if is_equal else "differ"
        result.wrong += [] if is_equal else ["the gradients differ"]
    return result


def check(
    offprof: Offprof, program: programs.Program, device: str, policies: Iterable[str]
) -> Iterator[tuple[str, Outcome]]:
    """Yields the outcome under each policy. Raises CommandFailed if the program cannot be recorded or tuned."""
    trace = offprof.folder / "trace.json.gz"
    recorded = offprof.run(
        program, device, "--policy", "keep", "--transforms", "cast:bfloat16,recompute", "-o", str(trace)
    )
    tuned = tuned_policy(offprof, trace)
    saved = sum(entry["tensors"] for entry in recorded["ledger"])
    # A virtual GPU has no values.
    plain = train(offprof, program, device, None)["gradients"] if device == "host" else None
    for name in policies:
        policy = offprof.folder / f"{name}.json"
        write_policy(policy, name, tuned, saved)
        try:
            outcome = train(offprof, program, device, {"policy": str(policy)})
            flags = SIMULATE_FLAGS.get(name, ())
            predicted = offprof.simulate(trace, "--policy", str(policy), *flags)["predicted"]
            yield name, compare(outcome, predicted, None if name in LOSSY else plain)
        except CommandFailed as error:
            yield name, Outcome(wrong=[str(error)])


def is_exact(offprof: Offprof, program: programs.Program, device: str, policies: list[str]) -> bool:
    """Checks a program and prints its rows."""
    exact = 0
    try:
        for policy, outcome in check(offprof, program, device, policies):
            print(outcome.row(program.name, policy), flush=True)
            if outcome.description:
                print("".join(f"{'':12}{wrong}\n" for wrong in outcome.wrong), end="", flush=True)
            exact += not outcome.wrong
    except CommandFailed as error:
        print(Outcome(wrong=[str(error)]).row(program.name, "-"), flush=True)
    return exact == len(policies)


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
    print(HEADER)
    exact = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            offprof = Offprof(arguments.offprof.resolve(), Path(folder))
            exact += is_exact(offprof, programs.program(name), arguments.device, policies)
    print(f"{exact} of {len(chosen)} programs exact on {arguments.device}")
    return 0 if exact == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
