#!/usr/bin/env python3
"""Checks that Holistic Trace Analysis (HTA) reads a trace of offprof.

Usage: check_trace_with_hta.py TRACE

Needs HolisticTraceAnalysis 0.5.0 (PyPI). Exit status: 0 all checks pass, 1 a check fails, 2 TRACE cannot be used,
77 (CTest's SKIP_RETURN_CODE) HTA is not installed.
"""

import gzip
import json
import logging
import math
import pathlib
import shutil
import sys
import tempfile

try:
    from hta.trace_analysis import TraceAnalysis
except ImportError as error:
    print(f"skipped: Holistic Trace Analysis cannot be imported ({error})")
    sys.exit(77)

DIRECTIONS = ("Memcpy DtoH", "Memcpy HtoD")


class Checker:
    def __init__(self):
        self.failures = 0

    def check(self, what, condition, details=""):
        print(f"{'ok    ' if condition else 'FAILED'} {what}{f' ({details})' if details else ''}")
        self.failures += 0 if condition else 1


def read_document(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def complete_events(document, category):
    return [e for e in document["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def steps_of(document):
    annotations = complete_events(document, "user_annotation")
    return sorted((e for e in annotations if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])


def load(path, folder):
    """Loads the trace. HTA needs a folder with one file for each rank, and reads the rank from the file's name."""
    suffix = ".json.gz" if path.read_bytes()[:2] == b"\x1f\x8b" else ".json"
    shutil.copy(path, folder / f"rank0{suffix}")
    return TraceAnalysis(trace_dir=str(folder))


def begin(event):
    """Returns the start time in whole microseconds. HTA rounds start times up and end times down."""
    return math.ceil(event["ts"])


def end(event):
    return math.floor(event["ts"] + event["dur"])


def expected_within_steps(document, events):
    """Returns the events that HTA keeps. With several steps it drops the last one, which may be incomplete."""
    steps = steps_of(document)
    if len(steps) < 2:
        return events
    return [e for e in events if begin(e) < begin(steps[-1])]


def lies_in_a_step(document, event):
    return any(begin(step) <= begin(event) < end(step) for step in steps_of(document))


def check_steps(checker, analysis, document):
    expected = [int(step["name"].split("#")[1]) for step in steps_of(document)]
    found = [int(number) for number in analysis.get_profiler_steps()]
    kept = expected[:-1] if len(expected) > 1 else expected
    checker.check("HTA finds the steps", found in (expected, kept), f"file {expected}, HTA {found}")


def check_operators(checker, frame, document):
    expected = {e["name"] for e in expected_within_steps(document, complete_events(document, "cpu_op"))}
    missing = expected - set(frame[frame["stream"] == -1]["s_name"])
    checker.check(
        "HTA has every operator", expected and not missing, f"{len(expected)} names, missing {sorted(missing)[:3]}"
    )


def check_copies(checker, frame, document):
    copies = expected_within_steps(document, complete_events(document, "gpu_memcpy"))
    for kind in DIRECTIONS:
        expected = [e for e in copies if e["name"].startswith(kind)]
        found = frame[frame["s_name"].str.startswith(kind)]
        details = f"file {len(expected)}, HTA {len(found)}"
        checker.check(f"HTA has every {kind} copy", len(expected) == len(found), details)
        streams = {e["args"]["stream"] for e in expected}
        checker.check(f"{kind} copies are on their streams", set(found["stream"]) == streams, f"{sorted(streams)}")
        in_steps = sum(lies_in_a_step(document, e) for e in expected)
        checker.check(f"{kind} copies belong to steps", (found["iteration"] >= 0).sum() == in_steps, f"{in_steps}")
    return copies


def check_kernels(checker, frame, document):
    """Checks that each kernel of a traced GPU exists, is on its stream, and is correlated with a call."""
    kernels = expected_within_steps(document, complete_events(document, "kernel"))
    found = frame[frame["s_cat"] == "kernel"]
    checker.check("HTA has every kernel", len(kernels) == len(found), f"file {len(kernels)}, HTA {len(found)}")
    streams = {e["args"]["stream"] for e in kernels}
    checker.check("kernels are on their streams", set(found["stream"]) == streams, f"{sorted(streams)}")
    checker.check("HTA finds the call of each kernel", (found["index_correlation"] > 0).all())


def check_kernel_breakdown(checker, analysis):
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    found = set(kinds["kernel_type"])
    checker.check(
        "get_gpu_kernel_breakdown sees computation", any("COMPUTATION" in kind for kind in found), f"{sorted(found)}"
    )


def check_breakdown(checker, analysis):
    table = analysis.get_temporal_breakdown(visualize=False)
    busy = float(table["non_compute_time(us)"].iloc[0])
    checker.check("get_temporal_breakdown sees copy time", busy > 0, f"{busy:.0f} us")


def check_bandwidth(checker, analysis, copies):
    summary = analysis.get_memory_bw_summary()
    found = set() if summary is None else {name for _, name in summary.index}
    expected = {e["name"][: len("Memcpy DtoH")].replace(" ", "") for e in copies if e["dur"] > 0}
    found = {name.replace(" ", "") for name in found}
    checker.check("get_memory_bw_summary has both directions", expected <= found, f"{sorted(found)}")


def check(path):
    document = read_document(path)
    checker = Checker()
    with tempfile.TemporaryDirectory() as folder:
        analysis = load(path, pathlib.Path(folder))
        analysis.t.decode_symbol_ids(use_shorten_name=False)
        frame = analysis.t.get_trace(0)
        check_steps(checker, analysis, document)
        check_operators(checker, frame, document)
        copies = check_copies(checker, frame, document)
        if complete_events(document, "kernel"):
            check_kernels(checker, frame, document)
            check_kernel_breakdown(checker, analysis)
        if copies:
            check_breakdown(checker, analysis)
            check_bandwidth(checker, analysis, copies)
    return checker.failures


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    logging.disable(logging.WARNING)
    path = pathlib.Path(sys.argv[1])
    if not path.is_file():
        print(f"'{path}' is not a file", file=sys.stderr)
        return 2
    return 1 if check(path) else 0


if __name__ == "__main__":
    sys.exit(main())
