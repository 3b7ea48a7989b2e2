"""Reads Google Benchmark's JSON from standard input and prints a table of the medians."""

import json
import sys

# Members of a result that Google Benchmark writes itself. All others are counters of the benchmark.
OWN = {
    "name", "run_name", "run_type", "aggregate_name", "aggregate_unit", "family_index", "per_family_instance_index",
    "repetitions", "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
}  # fmt: skip


def scaled(value):
    for unit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {prefix}"
    return f"{value:.3g} "


def counters(result):
    for name, value in result.items():
        if name in OWN:
            continue
        if name == "bytes_per_second":
            yield scaled(value) + "B/s"
        elif name == "items_per_second":
            yield f"{scaled(value)}{result.get('label', 'items')}/s"
        else:
            yield f"{name} {value:.3g}"


for result in json.load(sys.stdin)["benchmarks"]:
    if result.get("aggregate_name") != "median":
        continue
    name = result["run_name"].removesuffix("/real_time").removesuffix("/manual_time")
    time = f"{result['real_time']:8.3g} {result['time_unit']}"
    print("  ".join([f"{name:<24}{time}", *counters(result)]), flush=True)
