"""Runs the checks that need a GPU: memory, gradients, tracing, times and copies. Writes a row with the bound for each.

    gpu_check.py --program OFFPROF --device DEVICE --out FOLDER [--scratch FOLDER] [--build FOLDER] [--only CHECK]...
                 [--part N] [--minutes N] [--quick] [--record FOLDER] [--commit TEXT]
    gpu_check.py --list

    --program  the offprof program to check
    --device   cuda, cuda:N, or virtual:PROFILE, which runs the same job but measures no GPU
    --out      folder for gpu_check.json, table.md, log.txt and small traces, at most 8 files; rows of earlier parts stay
    --scratch  folder for models, large traces and the disk tier's file (default: a temporary folder, removed at the end)
    --build    build folder; its test programs that need a GPU run too
    --only     the name of a check, or a pattern: 'memory-*'
    --part     the checks of one part; each part ends within nine minutes
    --minutes  time limit for all checks (default 8.5): afterwards no check starts, and a running one is killed
    --quick    small models and few settings, for a quick test of the job itself
    --record   folder for a second copy of JSON and table without user names, host names and paths
    --commit   the commit that is checked; it is written into the rows
    --list     prints the checks, with their part and their time limit in seconds

Exit status: 0 all bounds are met; 1 a bound is not met, or a check failed or did not finish; 2 bad usage.
"""

import argparse
import contextlib
import fnmatch
import gzip
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

from children import Children, TimedOut
from results import Check, Results

# Patterns of device names, and the profile of the virtual GPU that is compared with that device.
PROFILES = {
    r"H200": "h200",
    r"H100 PCIe": "h100-pcie",
    r"H100.*80GB": "h100-80gb",
    r"A100.*40GB": "a100-40gb",
    r"A100.*80GB": "a100-80gb",
    r"B200": "b200",
    r"\bL4\b": "l4",
    r"L40S": "l40s",
    r"RTX 3090\b": "rtx3090",
    r"RTX 4090\b": "rtx4090",
}
MOST_TRACE_BYTES = 4 << 20  # size limit of a trace that is kept
MOST_TRACES = 4  # in addition to gpu_check.json, table.md and log.txt; at most eight files come back

# Zoo models with sizes for a GPU and small sizes. Checks of a single model use the first one.
MODELS = {
    "transformer": ("--batch 8 --seq 1024 --layers 8 --width 1024 --heads 16", "--batch 2 --layers 2"),
    "llama": (
        "--batch 4 --seq 1024 --layers 8 --width 1024 --heads 16 --kv-heads 4 --ffn 2752",
        "--batch 2 --layers 2",
    ),
    "resnet": ("--batch 128 --image 64", "--batch 4"),
}
# A model whose memory is nearly all activations: a stack of transformer blocks with a large batch, trained with SGD,
# which has no state.
BLOCK_STACK = (
    "llama", "--batch 32 --seq 1024 --layers 2 --width 1024 --heads 16 --kv-heads 4 --ffn 2752", "--batch 2 --layers 2",
)  # fmt: skip
# A step of this model writes a tenth of a GiB to the disk, and a run has about fifty such steps.
DISK_MODEL = ("transformer", "--batch 2 --seq 256 --layers 4 --width 512 --heads 8", "--batch 2 --layers 2")
MEMORY = (
    "device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes", "host_peak_bytes",
    "disk_peak_bytes", "disk_write_bytes", "disk_read_bytes",
)  # fmt: skip


class Failed(Exception):
    """A command failed unexpectedly."""


class Job:
    def __init__(self, options, scratch):
        self.options = options
        self.is_gpu = not options.device.startswith("virtual")
        self.results = Results(options.out, not self.is_gpu, options.commit)
        self.scratch = pathlib.Path(scratch)
        self.children = Children()
        self.over = time.monotonic() + 60 * options.minutes
        self.deadline = self.over  # of the running check
        self.reports = {}
        self.missed = 0

    def seconds_left(self):
        return self.deadline - time.monotonic()

    def child(self, command, environment=None):
        """Returns (exit status, stdout, stderr) of a command, which is killed at the check's deadline."""
        return self.children.run([str(word) for word in command], self.seconds_left(), environment)

    def offprof(self, *arguments, statuses=(0,)):
        """Runs an offprof command and returns its JSON report."""
        status, out, err = self.child([self.options.program, *arguments, "--format", "json"])
        if status not in statuses:
            raise Failed(f"offprof {' '.join(map(str, arguments))}: exit status {status}: {err.strip()[-2000:]}")
        report = json.loads(out)
        environment = report.get("environment", {})
        if "device_name" in environment and arguments[0] == "run" and self.options.device in arguments:
            self.results.set_environment(environment)
        return report

    def model(self, name):
        return self.made(name, name, *MODELS[name])

    def made(self, file, name, large, small):
        path = self.scratch / f"{file}.{'small' if self.options.quick else 'large'}.pt"
        if not path.exists():
            beside = path.with_suffix(
                ".part.pt"
            )  # so that the partial file of a killed command is never used as a model
            self.offprof("zoo", "make", name, "-o", beside, *(small if self.options.quick else large).split())
            beside.replace(path)
        return path

    def trace(self, name):
        return self.scratch / f"{name}.json.gz"

    def run(self, model, *policy, device=None, trace=None):
        """Returns the report of a run under `policy`. Each run is made only once."""
        key = (model, policy, device or self.options.device)
        if key not in self.reports:
            output = ["-o", trace] if trace else []
            self.reports[key] = self.offprof("run", model, "--device", key[2], *policy, *output)
            if trace:
                self.keep(trace)
        return self.reports[key]

    def keep(self, trace):
        """Copies a small trace to the results if the number of traces allows it."""
        there = [file.name for file in self.results.folder.glob("*.json.gz")]
        if trace.stat().st_size <= MOST_TRACE_BYTES and (trace.name in there or len(there) < MOST_TRACES):
            shutil.copyfile(trace, self.results.folder / trace.name)

    def recorded(self, name):
        return self.run(self.model(name), "--policy", "offload", trace=self.trace(name))

    # --- The checks ---

    def suite(self, check, program, share=None):
        """Runs the tests of a program that need a GPU; with `share` = (k, n), only the k-th of n parts."""
        if not self.options.build:
            check.skipped = "no build folder was given"
            return
        if not self.is_gpu:
            check.skipped = "the tests need a GPU"
            return
        # One process: CUDA starts once, and processes that share a GPU wait for each other's slices of time.
        environment = {"OFFPROF_REQUIRE_CUDA": "1"}
        if share:
            environment |= {"GTEST_SHARD_INDEX": str(share[0] - 1), "GTEST_TOTAL_SHARDS": str(share[1])}
        command = [pathlib.Path(self.options.build) / program, "--gtest_filter=*cuda"]
        status, out, err = self.child(command, environment)
        self.results.log(check.name, out + err)
        ran = re.search(r"(\d+) tests? from \d+ test suites? ran", out)
        check.figures["tests"] = int(ran.group(1)) if ran else None
        check.hold("exit_status", status, "0", status == 0)
        check.hold("ran", ran is not None, "true", ran is not None)
        check.hold("skipped", out.count("[  SKIPPED ]"), "0", "[  SKIPPED ]" not in out)

    def memory(self, check, name):
        """Checks that simulated and measured memory are equal."""
        self.hold_memory(check, self.recorded(name))

    def disk(self, check):
        """Checks that simulated and measured memory are equal if a rule places all tensors on a disk."""
        policy = self.scratch / "disk.json"
        rules = [{"min_bytes": 1024, "placement": "disk"}]
        window = 64 << 10 if self.options.quick else 64 << 20
        settings = {"prefetch_bytes": window, "disk_buffer_bytes": window, "rules": rules}
        text = json.dumps({"schema": "offprof.policy/1", "policy": settings})
        policy.write_text(text, encoding="utf-8")
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            where = ("--disk", folder) if self.is_gpu else ("--disk-bandwidth", "2GB/s")
            report = self.run(self.made("disk", *DISK_MODEL), "--policy", policy, *where)
        self.hold_memory(check, report)
        read = report["measured"]["disk_read_bytes"]
        check.hold("disk_read_bytes", read, "more than 0", read > 0)
        for key in ("step_time_ns", "exposed_ns"):
            check.figures[f"{key} simulated"] = report["replayed"].get(key)
            check.figures[f"{key} measured"] = report["measured"].get(key)

    def hold_memory(self, check, report):
        measured, replayed = report["measured"], report["replayed"]
        for key in MEMORY:
            if key in measured:
                difference = replayed.get(key, 0) - measured[key]
                check.hold(f"{key} simulated - measured", difference, "0", difference == 0)
        check.figures["device_peak_bytes"] = measured["device_peak_bytes"]
        gradients = report.get("gradients")
        # If passes without offloading differ from each other, gradients cannot be bitwise equal. The row then shows the
        # difference.
        is_kept = gradients == "bitwise" or str(gradients).startswith("not reproducible")
        check.hold("gradients", gradients, "bitwise", is_kept or not self.is_gpu)

    def virtual_memory(self, check, name):
        """Checks that memory on a virtual GPU equals memory on this one."""
        if not self.is_gpu:
            check.skipped = "the checked device is itself a virtual GPU"
            return
        real = self.recorded(name)
        device = real["environment"]["device_name"]
        profile = next((profile for pattern, profile in PROFILES.items() if re.search(pattern, device)), None)
        if profile is None:
            check.skipped = f"there is no profile of {device}"
            return
        virtual = self.run(self.model(name), "--policy", "offload", device=f"virtual:{profile}")
        for key in MEMORY:
            if key in real["measured"]:
                difference = virtual["measured"][key] - real["measured"][key]
                check.hold(f"{key} virtual - real", difference, "0", difference == 0)

    def tracing(self, check, name):
        """Checks lost records and the cost of the tracer."""
        tracing = self.recorded(name).get("tracing")
        if tracing is None:
            check.hold("tracing", None, "there", False)
            return
        for key in ("dropped_records", "untimed_records", "unreadable_buffers"):
            check.hold(key, tracing[key], "0", tracing[key] == 0)
        cost = tracing.get("relative_cost", {})
        if self.is_gpu:
            tracer = cost.get("tracer")
            check.hold("relative_cost tracer", tracer, "at most 0.02", tracer is not None and tracer <= 0.02)
        for key in ("streams", "recorder", "everything"):
            check.figures[f"relative_cost {key}"] = cost.get(key)
        for key in ("device_bytes", "host_bytes"):
            check.figures[key] = tracing.get(key)

    def copies(self, check, name):
        """Compares the speed of large copies with the calibrated link. Reports the share of copy time that is hidden."""
        tracing = self.recorded(name).get("tracing")
        if tracing is None:
            check.hold("tracing", None, "there", False)
            return
        with gzip.open(self.trace(name), "rt", encoding="utf-8") as file:
            link = json.load(file)["environment"]["link"]
        for direction in ("d2h", "h2d"):
            reached = tracing.get(f"{direction}_bytes_per_second")
            calibrated = link[direction]["bytes_per_second"]
            check.figures[f"{direction}_bytes_per_second"] = reached
            if reached is not None and calibrated > 0:
                share = reached / calibrated
                check.hold(f"{direction} of the link", round(share, 4), "at least 0.95", share >= 0.95)
        hidden = [
            1 - step["exposed_ns"] / busy
            for step in tracing["steps"]
            if (busy := step["d2h"]["busy_ns"] + step["h2d"]["busy_ns"]) > 0
        ]
        check.figures["overlap_ratio"] = round(min(hidden), 4) if hidden else None

    def times(self, check, name):
        """Compares predicted with measured step times, over settings that span the space of policies."""
        self.recorded(name)
        policies, rounds = ("6", "1") if self.options.quick else ("12", "2")
        report = self.offprof(
            "validate", self.model(name), "--trace", self.trace(name), "--device", self.options.device,
            "--policies", policies, "--rounds", rounds, statuses=(0, 1),
        )  # fmt: skip
        figures = report["less_drift"]
        check.figures["memory_is_exact"] = report["memory_is_exact"]
        check.hold("memory_is_right", report["memory_is_right"], "true", report["memory_is_right"])
        check.figures["outcome"] = report["outcome"]
        refused = len(report.get("refused", []))
        check.hold("settings that ran out of memory", refused, "0", refused == 0)
        check.figures["mean_noise"] = figures["mean_noise"]
        check.hold("mean_error", round(figures["mean_error"], 5), "at most 0.03", figures["mean_error"] <= 0.03)
        check.hold("max_error", round(figures["max_error"], 5), "at most 0.08", figures["max_error"] <= 0.08)
        tau = figures["kendall_tau"]
        check.figures["kendall_tau"] = tau
        if tau is not None and tau < 0.95:
            check.misses.append(f"kendall_tau is {tau}, not at least 0.95")

    def against_trl(self, check):
        """Compares our engine with TRL's rules at the same threshold and stash."""
        model = self.made("block_stack", *BLOCK_STACK)
        common = ("run", model, "--device", self.options.device, "--optimizer", "sgd", "--calibration", "brief")
        trl = self.offprof(*common, "--policy", "trl")["measured"]
        ours = self.offprof(*common, "--threshold", "1KiB", "--stash", "5")["measured"]
        for key, bound in (("device_peak_bytes", 0.8), ("step_time_ns", 0.9)):
            ratio = ours[key] / trl[key]
            check.hold(f"{key}, ratio", round(ratio, 4), f"at most {bound}", ratio <= bound or self.options.quick)

    def sanitizer(self, check, name):
        """Runs compute-sanitizer on a short run."""
        tool = shutil.which("compute-sanitizer")
        if not self.is_gpu or tool is None:
            check.skipped = "it needs a GPU" if not self.is_gpu else "compute-sanitizer is not on the PATH"
            return
        small = self.scratch / f"{name}.sanitized.pt"
        self.offprof("zoo", "make", name, "-o", small, *MODELS[name][1].split())
        status, out, err = self.child(
            [tool, "--error-exitcode", "9", self.options.program, "run", small, "--device", self.options.device,
             "--steps", "1", "-q"]
        )  # fmt: skip
        self.results.log(check.name, out + err)
        check.hold("exit_status", status, "0", status == 0)

    # --- All of it ---

    def do(self, entry):
        """Runs one check. Writes its row as `unfinished` before it starts, so that the row exists if the job is killed."""
        check = Check(entry.name)
        self.results.put(check)
        began = time.monotonic()
        self.deadline = min(self.over, began + entry.seconds)
        try:
            if began >= self.over:
                raise TimedOut(f"the time limit of {self.options.minutes:g} minutes has passed")
            entry.work(self, check)
            check.finished = True
        except TimedOut as error:
            check.misses.append(str(error))
        except (Failed, KeyError, OSError, ValueError) as error:
            check.finished = True
            check.misses.append(f"{type(error).__name__}: {error}")
        seconds = time.monotonic() - began
        check.figures["seconds"] = round(seconds, 1)
        self.results.put(check)
        self.missed += 1 if check.misses else 0
        print(f"{check.verdict():11}{seconds:7.1f} s  {check.name}", flush=True)
        for line in check.misses + ([check.skipped] if check.skipped else []):
            print(f"             {line}", flush=True)


class Entry:
    """A check that can be selected. Calls `work(job, check)` with a time limit of `seconds`."""

    def __init__(self, name, part, seconds, work):
        self.name, self.part, self.seconds, self.work = name, part, seconds, work


def entries():
    """Returns all checks in the order of parts. The first check of a model records it; later ones in the part reuse that."""

    def of(method, *arguments):
        return lambda job, check: method(job, check, *arguments)

    first, second, third = MODELS
    return [
        Entry("suite-conformance", 1, 200, of(Job.suite, "device_conformance_test")),
        Entry("suite-hazards-1", 1, 300, of(Job.suite, "hazards_test", (1, 2))),
        Entry("suite-hazards-2", 2, 300, of(Job.suite, "hazards_test", (2, 2))),
        Entry("disk", 2, 180, of(Job.disk)),
        Entry(f"memory-{first}", 3, 150, of(Job.memory, first)),
        Entry(f"tracing-{first}", 3, 150, of(Job.tracing, first)),
        Entry(f"copies-{first}", 3, 150, of(Job.copies, first)),
        Entry(f"virtual-memory-{first}", 3, 60, of(Job.virtual_memory, first)),
        Entry(f"times-{first}", 3, 270, of(Job.times, first)),
        Entry(f"memory-{second}", 4, 150, of(Job.memory, second)),
        Entry(f"virtual-memory-{second}", 4, 60, of(Job.virtual_memory, second)),
        Entry(f"times-{second}", 4, 270, of(Job.times, second)),
        Entry(f"memory-{third}", 5, 150, of(Job.memory, third)),
        Entry(f"virtual-memory-{third}", 5, 60, of(Job.virtual_memory, third)),
        Entry(f"times-{third}", 5, 270, of(Job.times, third)),
        Entry("against-trl", 6, 240, of(Job.against_trl)),
        Entry(f"sanitizer-{first}", 6, 240, of(Job.sanitizer, first)),
    ]


def chosen(options):
    """Returns the selected entries; all if none is selected. Raises ValueError for an unknown name."""
    everything = entries()
    for pattern in options.only or []:
        if not any(fnmatch.fnmatchcase(entry.name, pattern) for entry in everything):
            raise ValueError(f"no such check: {pattern} (see --list)")
    if options.part and all(entry.part != options.part for entry in everything):
        raise ValueError(f"no such part: {options.part} (see --list)")
    return [
        entry
        for entry in everything
        if (not options.part or entry.part == options.part)
        and (not options.only or any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in options.only))
    ]


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program")
    parser.add_argument("--device")
    parser.add_argument("--out")
    parser.add_argument("--scratch")
    parser.add_argument("--build")
    parser.add_argument("--only", action="append")
    parser.add_argument("--part", type=int)
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record")
    parser.add_argument("--commit")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    if not options.list and not (options.program and options.device and options.out):
        parser.error("--program, --device and --out are needed")
    return options


def scratch_folder(options):
    if not options.scratch:
        return tempfile.TemporaryDirectory(prefix="offprof_gpu_check_")
    pathlib.Path(options.scratch).mkdir(parents=True, exist_ok=True)
    return contextlib.nullcontext(options.scratch)


def main(arguments):
    options = parse_options(arguments)
    try:
        wanted = chosen(options)
    except ValueError as error:
        print(f"gpu_check.py: {error}", file=sys.stderr)
        return 2
    if options.list:
        for entry in wanted:
            print(f"part {entry.part}  at most {entry.seconds} s  {entry.name}")
        return 0
    with scratch_folder(options) as scratch:
        job = Job(options, scratch)

        def stop(number, _frame):
            job.children.kill()
            sys.exit(128 + number)

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)
        for entry in wanted:
            job.do(entry)
        if options.record:
            job.results.record(options.record)
    print(f"{options.out}/gpu_check.json, {options.out}/table.md")
    return 1 if job.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
