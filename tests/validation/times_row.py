"""Prints one row of the table of scripts/validate_times.sh from a JSON report of `offprof validate`.

    times_row.py REPORT MODEL LINK TRIES
"""

import json
import sys


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


def less_noise(accuracy, key, form):
    """The range in which the figure would lie without noise."""
    ends = accuracy[key + "_less_noise"]
    return "" if ends is None else f" ({form(ends[0])} to {form(ends[1])})"


def error(accuracy, key):
    return percent(accuracy[key]) + less_noise(accuracy, key, lambda share: f"{100 * share:.2f}")


def ranking(accuracy):
    if accuracy["kendall_tau"] is None:
        return "nothing to rank"
    ends = less_noise(accuracy, "kendall_tau", lambda tau: f"{tau:.3f}")
    return f'{accuracy["kendall_tau"]:.3f}{ends} of {accuracy["ranked_pairs"]} pairs'


def drift(share):
    return "-" if share is None else f"{100 * share:+.2f} %"


def gradients(report):
    if not report["gradients_are_right"]:
        return "WRONG"
    return "bitwise" if any(one["gradients"] == "bitwise" for one in report["settings"]) else "none"


def verdict(report):
    """What the report ends with, and the bounds that are not, or perhaps not, kept."""
    open_or_missed = [
        f'{key.replace("_", " ")} {word}'
        for key, word in report["verdicts"].items()
        if word in ("beyond", "hidden by noise")
    ]
    return ": ".join([report["outcome"], *([", ".join(open_or_missed)] if open_or_missed else [])])


def cores(report):
    """Visits made again, and those that count although the cores were elsewhere."""
    again, displaced = report["repeated_visits"], report["displaced_visits"]
    return f"{again} again, {displaced} displaced" if again or displaced else "in place"


def row(report, model, link, tries):
    less_drift = report["less_drift"]
    return [
        model,
        link,
        str(len(report["settings"])),
        error(less_drift, "mean_error"),
        error(less_drift, "p95_error"),
        percent(less_drift["max_error"]),
        percent(less_drift["mean_noise"]),
        percent(less_drift["p95_noise"]),
        ranking(less_drift),
        drift(report["drift"]),
        drift(report["recalibrated_drift"]),
        percent(report["by_trace"]["mean_error"]),
        percent(report["by_trace"]["p95_error"]),
        "0 bytes" if report["memory_is_exact"] else "DIFFERS",
        gradients(report),
        cores(report),
        tries,
        verdict(report),
    ]


with open(sys.argv[1], encoding="utf-8") as file:
    print("|", " | ".join(row(json.load(file), *sys.argv[2:])), "|", flush=True)
