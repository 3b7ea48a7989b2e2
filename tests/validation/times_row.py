"""Prints one row of the table of scripts/validate_times.sh from a JSON report of `offprof validate`.

    times_row.py REPORT MODEL LINK
"""

import json
import sys


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


def errors(accuracy):
    return [percent(accuracy[key]) for key in ("mean_error", "p95_error", "max_error")]


def ranking(accuracy):
    if accuracy["kendall_tau"] is None:
        return "nothing to rank"
    return f'{accuracy["kendall_tau"]:.3f} of {accuracy["ranked_pairs"]} pairs'


def row(report, model, link):
    less_drift = report["less_drift"]
    return [
        model,
        link,
        str(len(report["settings"])),
        *errors(less_drift),
        percent(less_drift["mean_noise"]),
        percent(less_drift["p95_noise"]),
        ranking(less_drift),
        f'{100 * report["drift"]:+.2f} %',
        *errors(report["by_trace"])[:2],
        "0 bytes" if report["memory_is_exact"] else "DIFFERS",
    ]


with open(sys.argv[1], encoding="utf-8") as file:
    print("|", " | ".join(row(json.load(file), *sys.argv[2:])), "|", flush=True)
