"""What each placement costs and saves, by model of the zoo: runs the program, prints a table in Markdown.

Exit status 1 where a run failed, or its memory or gradients are not as predicted.
"""

import argparse
import json
import pathlib
import subprocess
import sys

FLOATS = "float*"
# By the name in the table: rules for all tensors that the placement takes, and flags of the run.
WAYS = {
    "host": ([{"placement": "host"}], []),
    "disk": ([{"placement": "disk"}], ["--disk", "{folder}"]),
    "compressed": ([{"placement": "disk"}], ["--compress"]),
    "recompute": ([{"placement": "recompute"}], []),
    "bits": ([{"dtype": "bool", "placement": "bits"}], []),
    "cast:bfloat16": ([{"dtype": FLOATS, "placement": "cast:bfloat16"}], []),
    "quantize:uint8:128": ([{"dtype": FLOATS, "placement": "quantize:uint8:128"}], []),
    "quantize:uint8:128+host": ([{"dtype": FLOATS, "placement": "quantize:uint8:128+host"}], []),
    "shards": ([], ["--shards", "auto"]),
    "shards, 2 micro-batches": ([], ["--shards", "auto", "--microbatches", "2"]),
    "weights on the host": ([], ["--weights", "host"]),
}


def run(program, words):
    ended = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True)
    if ended.returncode != 0:
        return None, ended.stderr.strip().splitlines()[-1]
    return json.loads(ended.stdout), ""


def policy_file(folder, name, rules):
    path = folder / f"{name.replace(':', '_').replace('+', '_').replace(' ', '_')}.json"
    policy = {"name": "placement", "threshold_bytes": None, "rules": rules}
    path.write_text(json.dumps({"schema": "offprof.policy/1", "policy": policy}))
    return str(path)


def is_as_predicted(report):
    return not report["inexact"] and report["gradients"] in ("bitwise", "lossy", "not applicable")


def cell(report, keep):
    figures, kept = report["measured"], keep["measured"]
    peak = figures["device_peak_bytes"] / kept["device_peak_bytes"]
    time = figures["step_time_ns"] / kept["step_time_ns"]
    mark = "" if is_as_predicted(report) else " NOT AS PREDICTED"
    return f"{100 * peak:.0f} %, {time:.2f}×{mark}"


def costs_of(model, options):
    path = str(options.work / f"{model}.pt")
    subprocess.run([options.program, "zoo", "make", model, "-o", path, "-q"], check=True, capture_output=True)
    train = ["run", path, "--steps", options.steps, "--device", "host"]
    keep, why = run(options.program, [*train, "--policy", "keep"])
    if keep is None:
        raise SystemExit(f"{model}: {why}")
    figures = keep["measured"]
    cells = [f"{figures['device_peak_bytes'] / 2**20:.1f} MiB, {figures['step_time_ns'] / 1e6:.0f} ms"]
    for name, (rules, flags) in WAYS.items():
        flags = [flag.format(folder=options.work) for flag in flags]
        words = [*train, "--policy", policy_file(options.work, name, rules), *flags]
        report, why = run(options.program, words)
        cells.append(cell(report, keep) if report else f"FAILED: {why}")
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--steps", default="5")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    models = options.models
    if not models:
        listed, _ = run(options.program, ["zoo", "list"])
        models = [model["name"] for model in listed["models"]]

    columns = []
    for model in models:
        columns.append(costs_of(model, options))
        print(f"{model}: {'; '.join(columns[-1])}", file=sys.stderr, flush=True)
    print("| |", " | ".join(models), "|")
    print("| --- " * (1 + len(models)) + "|")
    for name, cells in zip(["nothing offloaded", *WAYS], zip(*columns)):
        print(f"| {name} |", " | ".join(cells), "|")
    wrong = [cell for cells in columns for cell in cells if "NOT AS PREDICTED" in cell or "FAILED" in cell]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
