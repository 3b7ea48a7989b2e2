"""Runs offprof to measure the cost and the savings of each placement for each model. Prints a table in Markdown.

Exit status 1 if a run failed, or if its memory or gradients are not as predicted. On a virtual GPU, whose times are
modelled, its times must be as predicted too.
"""

import argparse
import json
import pathlib
import subprocess
import sys

FLOATS = "float*"
# The blocks of each model, for activation checkpointing.
CHECKPOINT = {"mlp": "layer?", "unet": "layer?", "qwen2": "*.layers.*", "shufflenet": "stage?.*"}
CHECKPOINT_OF_OTHERS = "*.layer?"
HOST_DISK = ["--disk", "{folder}"]
MODELLED_DISK = ["--disk-bandwidth", "2GB/s"]


def ways_on(device, only):
    """Returns for each name in the table the rules for all tensors that support the placement, and the flags of the run."""
    is_virtual = device.startswith("virtual")
    disk = MODELLED_DISK if is_virtual else HOST_DISK
    parameters_on_disk = MODELLED_DISK if is_virtual else ["--offload-params-dir", "{folder}"]
    ways = {
        "host": ([{"placement": "host"}], []),
        "disk": ([{"placement": "disk"}], disk),
        "compressed": ([{"placement": "compress"}], []),
        "recompute": ([{"placement": "recompute"}], []),
        "bits": ([{"dtype": "bool", "placement": "bits"}], []),
        "cast:bfloat16": ([{"dtype": FLOATS, "placement": "cast:bfloat16"}], []),
        "cast:float16": ([{"dtype": FLOATS, "placement": "cast:float16"}], []),
        "quantize:uint8": ([{"dtype": FLOATS, "placement": "quantize:uint8"}], []),
        "quantize:uint8:128": ([{"dtype": FLOATS, "placement": "quantize:uint8:128"}], []),
        "quantize:uint8:128+host": ([{"dtype": FLOATS, "placement": "quantize:uint8:128+host"}], []),
        "activation checkpointing": ([], ["--checkpoint", "{checkpoint}"]),
        "layer slices": ([], ["--slices", "auto"]),
        "layer slices, 2 micro-batches": ([], ["--slices", "auto", "--microbatches", "2"]),
        "parameters on the host": ([], ["--offload-params", "host"]),
        "parameters on the disk": ([], ["--offload-params", "disk", *parameters_on_disk]),
    }
    if is_virtual:
        del ways["compressed"]  # a virtual GPU has no values to compress
    return {name: way for name, way in ways.items() if not only or name in only}


def run(program, words):
    ended = subprocess.run([program, *words, "--format", "json"], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error")]
        return None, errors[0] if errors else f"status {ended.returncode}"
    return json.loads(ended.stdout), ""


def policy_file(folder, name, rules):
    path = folder / f"{name.replace(':', '_').replace('+', '_').replace(' ', '_')}.json"
    policy = {"name": "placement", "threshold_bytes": None, "rules": rules}
    path.write_text(json.dumps({"schema": "offprof.policy/1", "policy": policy}))
    return str(path)


def is_as_predicted(report, device):
    figures, predicted = report["measured"], report["replayed"]
    times_are = not device.startswith("virtual") or figures["step_time_ns"] == predicted["step_time_ns"]
    return times_are and not report["inexact"] and report["gradients"] in ("bitwise", "lossy", "not applicable")


def cell(report, keep, device):
    figures, kept = report["measured"], keep["measured"]
    peak = figures["device_peak_bytes"] / kept["device_peak_bytes"]
    time = figures["step_time_ns"] / kept["step_time_ns"]
    mark = "" if is_as_predicted(report, device) else " NOT AS PREDICTED"
    return f"{100 * peak:.0f} %, {time:.2f}×{mark}"


def training_of(model, options):
    """Returns the words of a run of the model: an exported one, with optional input specs beside it, or a zoo model."""
    train = ["--steps", options.steps, "--device", options.device]
    if model.endswith(".pt"):
        inputs = pathlib.Path(model).with_suffix(".inputs")
        specs = inputs.read_text().split() if inputs.exists() else []
        return ["run", model, *[word for spec in specs for word in ("--input", spec)], *train]
    path = str(options.work / f"{model}.pt")
    subprocess.run([options.program, "zoo", "make", model, "-o", path, "-q"], check=True, capture_output=True)
    return ["run", path, *train]


def costs_of(model, options):
    train = training_of(model, options)
    keep, why = run(options.program, [*train, "--policy", "keep"])
    if keep is None:
        raise SystemExit(f"{model}: {why}")
    figures = keep["measured"]
    cells = [f"{figures['device_peak_bytes'] / 2**20:.1f} MiB, {figures['step_time_ns'] / 1e6:.3g} ms"]
    for name, (rules, flags) in ways_on(options.device, options.only).items():
        checkpoint = CHECKPOINT.get(pathlib.Path(model).stem, CHECKPOINT_OF_OTHERS)
        filled = [flag.format(folder=options.work, checkpoint=checkpoint) for flag in flags]
        words = [*train, "--policy", policy_file(options.work, name, rules), *filled]
        report, why = run(options.program, words)
        cells.append(cell(report, keep, options.device) if report else f"FAILED: {why}")
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--steps", default="5")
    parser.add_argument("--device", default="host")
    parser.add_argument("--only", action="append", default=[])
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
    print("| |", " | ".join(pathlib.Path(model).stem for model in models), "|")
    print("| --- " * (1 + len(models)) + "|")
    for name, cells in zip(
        ["nothing offloaded", *ways_on(options.device, options.only)], zip(*columns, strict=True), strict=True
    ):
        print(f"| {name} |", " | ".join(cells), "|")
    wrong = [cell for cells in columns for cell in cells if "NOT AS PREDICTED" in cell or "FAILED" in cell]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
