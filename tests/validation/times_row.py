"""Prints one row of the table of scripts/validate_times.sh from a JSON report of `offprof validate` (plain or .gz), or the
head of the table.

    times_row.py REPORT MODEL LINK TRIES
    times_row.py --head

docs/results/validation.md ("What the table of step times has") defines the columns.
"""

import gzip
import json
import sys

COLUMNS = [
    "model",
    "link",
    "settings",
    "from the trace alone: mean error",
    "95 %",
    "drift-corrected: mean error",
    "95 %",
    "largest",
    "keep's time for all settings: mean error",
    "95 %",
    "tau, ranked pairs",
    "tau, all pairs",
    "noise: mean",
    "95 %",
    "drift",
    "recalibrated",
    "memory",
    "gradients",
    "cores",
    "tries",
    "predictions",
]


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


def less_noise(accuracy, key, form):
    """Returns the noise-corrected range of the figure as text."""
    ends = accuracy[key + "_less_noise"]
    return "" if ends is None else f" ({form(ends[0])} to {form(ends[1])})"


def error(accuracy, key):
    return percent(accuracy[key]) + less_noise(accuracy, key, lambda share: f"{100 * share:.2f}")


def ranking(accuracy):
    if accuracy["kendall_tau"] is None:
        return "no pairs to rank"
    ends = less_noise(accuracy, "kendall_tau", lambda tau: f"{tau:.3f}")
    return f"{accuracy['kendall_tau']:.3f}{ends} of {accuracy['ranked_pairs']} pairs"


def drift(share):
    return "-" if share is None else f"{100 * share:+.2f} %"


def gradients(report):
    if not report["gradients_are_right"]:
        return "WRONG"
    return "bitwise" if any(one["gradients"] == "bitwise" for one in report["settings"]) else "none"


def verdict(report):
    """Returns the report's outcome, with the bounds that are missed or hidden by noise."""
    open_or_missed = [
        f"{key.replace('_', ' ')} {word}"
        for key, word in report["verdicts"].items()
        if word in ("beyond", "hidden by noise")
    ]
    return ": ".join([report["outcome"], *([", ".join(open_or_missed)] if open_or_missed else [])])


def cores(report):
    """Returns the numbers of repeated visits, and of visits that count although the cores were displaced."""
    again, displaced = report["repeated_visits"], report["displaced_visits"]
    return f"{again} repeated, {displaced} displaced" if again or displaced else "in place"


def time_of(metrics):
    return metrics["step_time_ns"]


def judged(report):
    return [one for one in report["settings"] if not one["sets_drift"]]


def sign(number):
    return (number > 0) - (number < 0)


def tau_of_all_pairs(report):
    """Returns Kendall's tau of the trace's predictions over every pair of judged settings whose measured times differ.
    A pair with equal predictions counts as neither concordant nor discordant."""
    times = [(time_of(one["predicted"]), time_of(one["measured"])) for one in judged(report)]
    pairs = [(a, b) for i, a in enumerate(times) for b in times[i + 1 :] if a[1] != b[1]]
    if not pairs:
        return None
    return sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in pairs) / len(pairs)


def p95(values):
    """Returns the smallest value that 95 % of the values do not exceed, as simulator/steps/accuracy.cpp does."""
    return sorted(values)[(len(values) * 95 + 99) // 100 - 1]


def errors_of_keep(report):
    """Returns the error for each judged setting if its prediction were the measured time of `keep` in the same run. Empty
    without `keep`."""
    keep = [time_of(one["measured"]) for one in report["settings"] if one["sets_drift"]]
    if not keep:
        return []
    return [abs(keep[0] - time_of(one["measured"])) / time_of(one["measured"]) for one in judged(report)]


def tau(value):
    return "-" if value is None else f"{value:.3f}"


def row(report, model, link, tries):
    less_drift, of_keep = report["less_drift"], errors_of_keep(report)
    return [
        model,
        link,
        str(len(report["settings"])),
        percent(report["by_trace"]["mean_error"]),
        percent(report["by_trace"]["p95_error"]),
        error(less_drift, "mean_error"),
        error(less_drift, "p95_error"),
        percent(less_drift["max_error"]),
        percent(sum(of_keep) / len(of_keep) if of_keep else None),
        percent(p95(of_keep) if of_keep else None),
        ranking(less_drift),
        tau(tau_of_all_pairs(report)),
        percent(less_drift["mean_noise"]),
        percent(less_drift["p95_noise"]),
        drift(report["drift"]),
        drift(report["recalibrated_drift"]),
        "0 bytes" if report["memory_is_exact"] else "DIFFERS",
        gradients(report),
        cores(report),
        tries,
        verdict(report),
    ]


def line(cells):
    return "| " + " | ".join(cells) + " |"


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def main(arguments):
    if arguments == ["--head"]:
        print(line(COLUMNS), "|" + "---|" * len(COLUMNS), sep="\n", flush=True)
    else:
        print(line(row(read(arguments[0]), *arguments[1:])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
