"""What only a GPU can prove, in one run: memory, gradients, tracing, times and copies, each held against its bound.

    gpu_check.py --program OFFPROF --device DEVICE --out FOLDER [--build FOLDER] [--minutes N] [--quick]

    --program  the program that is checked
    --device   cuda, cuda:N, or virtual:PROFILE: then the job is the same, and nothing of it is said of a GPU
    --out      where gpu_check.json, table.md and the traces go
    --build    build folder whose tests labelled `gpu` are run too
    --minutes  no check is begun after that many (8)
    --quick    small models, few settings: whether the job itself works

Exit status: 0 no bound is missed, 1 one is, or a check failed, 2 bad usage.
"""

import argparse
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# The profile of a virtual GPU that is held against the real one, by what the device is called.
PROFILES = {
    r"H200": "h200",
    r"H100.*80GB": "h100-80gb",
    r"A100.*40GB": "a100-40gb",
    r"\bL4\b": "l4",
    r"RTX 4090\b": "rtx4090",
}
MOST_TRACE_BYTES = 2 << 20  # of one that is kept

# Zoo models: sizes for a GPU, and small ones. The first is the one that single checks use.
MODELS = {
    "transformer": ("--batch 8 --seq 1024 --layers 8 --width 1024 --heads 16", "--batch 2 --layers 2"),
    "llama": ("--batch 4 --seq 1024 --layers 8 --width 1024 --heads 16 --kv-heads 4 --ffn 2752", "--batch 2 --layers 2"),
    "resnet": ("--batch 128 --image 64", "--batch 4"),
}
# One whose memory is nearly all activations: a stack of transformer blocks on a long batch, trained with SGD, which keeps
# no state.
BLOCK_STACK = (
    "llama", "--batch 64 --seq 1024 --layers 2 --width 1024 --heads 16 --kv-heads 4 --ffn 2752", "--batch 2 --layers 2",
)  # fmt: skip
MEMORY = (
    "device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes", "host_peak_bytes",
    "disk_peak_bytes", "disk_write_bytes", "disk_read_bytes",
)  # fmt: skip


class Failed(Exception):
    """A command that should have worked did not."""


class Check:
    """One row: what was asked, what came out, and whether it keeps its bound."""

    def __init__(self, name):
        self.name = name
        self.figures = {}
        self.misses = []
        self.skipped = None

    def hold(self, what, value, bound, is_kept):
        """Notes a figure with its bound; None: it could not be measured."""
        self.figures[what] = value
        if value is None:
            self.misses.append(f"{what} was not measured")
        elif not is_kept:
            self.misses.append(f"{what} is {value}, not {bound}")

    def verdict(self):
        if self.skipped:
            return "skipped"
        return "missed" if self.misses else "kept"

    def to_json(self):
        json_ = {"check": self.name, "verdict": self.verdict(), "figures": self.figures}
        if self.misses:
            json_["misses"] = self.misses
        if self.skipped:
            json_["why"] = self.skipped
        return json_


class Job:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out)
        self.models = self.out / "models"
        self.traces = self.out / "traces"
        for folder in (self.models, self.traces):
            folder.mkdir(parents=True, exist_ok=True)
        self.is_gpu = not options.device.startswith("virtual")
        self.began = time.monotonic()
        self.checks = []
        self.runs = {}

    def offprof(self, *arguments, statuses=(0,)):
        """The report of a command."""
        command = [self.options.program, *map(str, arguments), "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in statuses:
            raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
        return json.loads(done.stdout)

    def model(self, name):
        return self.made(name, name, *MODELS[name])

    def made(self, file, name, large, small):
        path = self.models / f"{file}.pt"
        if not path.exists():
            self.offprof("zoo", "make", name, "-o", path, *(small if self.options.quick else large).split())
        return path

    def trace(self, name):
        return self.traces / f"{name}.json.gz"

    def run(self, name, *policy, device=None, trace=None):
        """One run under `policy`, made once."""
        key = (name, policy, device or self.options.device)
        if key not in self.runs:
            output = ["-o", trace] if trace else []
            self.runs[key] = self.offprof("run", self.model(name), "--device", key[2], *policy, *output)
        return self.runs[key]

    def recorded(self, name):
        return self.run(name, "--policy", "offload", trace=self.trace(name))

    # --- The checks ---

    def suite(self, check):
        """The tests that need a GPU."""
        if not self.options.build:
            check.skipped = "no build folder was given"
            return
        if not self.is_gpu:
            check.skipped = "they need a GPU"
            return
        done = subprocess.run(
            ["ctest", "--test-dir", self.options.build, "-L", "gpu", "--output-on-failure"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        (self.out / "suite.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        check.hold("exit_status", done.returncode, "0", done.returncode == 0)
        check.hold("skipped", done.stdout.count("***Skipped"), "0", "***Skipped" not in done.stdout)

    def memory(self, check, name):
        """Simulated against measured, to the byte."""
        self.hold_memory(check, self.recorded(name))

    def disk(self, check, name):
        """Likewise where a rule places all tensors on a disk."""
        policy = self.out / "disk.json"
        rules = [{"min_bytes": 1024, "placement": "disk"}]
        window = 64 << 10 if self.options.quick else 64 << 20
        settings = {"prefetch_bytes": window, "disk_buffer_bytes": window, "rules": rules}
        text = json.dumps({"schema": "offprof.policy/1", "policy": settings})
        policy.write_text(text, encoding="utf-8")
        with tempfile.TemporaryDirectory(dir=self.out) as folder:
            where = ("--disk", folder) if self.is_gpu else ("--disk-bandwidth", "2GB/s")
            report = self.run(name, "--policy", policy, *where)
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
        check.hold("gradients", gradients, "bitwise", gradients == "bitwise" or not self.is_gpu)

    def virtual_memory(self, check, name):
        """A virtual GPU against this one, to the byte."""
        if not self.is_gpu:
            check.skipped = "it is the virtual GPU that is checked"
            return
        real = self.recorded(name)
        device = real["environment"]["device_name"]
        profile = next((profile for pattern, profile in PROFILES.items() if re.search(pattern, device)), None)
        if profile is None:
            check.skipped = f"there is no profile of {device}"
            return
        virtual = self.run(name, "--policy", "offload", device=f"virtual:{profile}")
        for key in MEMORY:
            if key in real["measured"]:
                difference = virtual["measured"][key] - real["measured"][key]
                check.hold(f"{key} virtual - real", difference, "0", difference == 0)

    def tracing(self, check, name):
        """What the tracer lost, and what it costs."""
        tracing = self.recorded(name).get("tracing")
        if tracing is None:
            check.hold("tracing", None, "there", False)
            return
        for key in ("dropped_records", "untimed_records", "unreadable_buffers"):
            check.hold(key, tracing[key], "0", tracing[key] == 0)
        cost = tracing.get("relative_cost", {}).get("everything")
        if self.is_gpu:
            check.hold("relative_cost", cost, "at most 0.02", cost is not None and cost <= 0.02)
        for key in ("device_bytes", "host_bytes"):
            check.figures[key] = tracing.get(key)

    def copies(self, check, name):
        """Large copies against the link as it was calibrated, and how much of all copies is hidden."""
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
        """Predicted against measured step times, over settings that span what a policy can be."""
        self.recorded(name)
        policies, rounds = ("6", "1") if self.options.quick else ("16", "3")
        report = self.offprof(
            "validate", self.model(name), "--trace", self.trace(name), "--device", self.options.device,
            "--policies", policies, "--rounds", rounds, statuses=(0, 1),
        )  # fmt: skip
        figures = report["less_drift"]
        check.hold("memory_is_exact", report["memory_is_exact"], "true", report["memory_is_exact"])
        check.figures["outcome"] = report["outcome"]
        check.figures["mean_noise"] = figures["mean_noise"]
        check.hold("mean_error", round(figures["mean_error"], 5), "at most 0.03", figures["mean_error"] <= 0.03)
        check.hold("max_error", round(figures["max_error"], 5), "at most 0.08", figures["max_error"] <= 0.08)
        tau = figures["kendall_tau"]
        check.figures["kendall_tau"] = tau
        if tau is not None and tau < 0.95:
            check.misses.append(f"kendall_tau is {tau}, not at least 0.95")

    def against_trl(self, check):
        """Our engine against TRL's rules at the same threshold and stash."""
        model = self.made("block_stack", *BLOCK_STACK)
        common = ("run", model, "--device", self.options.device, "--optimizer", "sgd")
        trl = self.offprof(*common, "--policy", "trl")["measured"]
        ours = self.offprof(*common, "--threshold", "1KiB", "--stash", "5")["measured"]
        for key, bound in (("device_peak_bytes", 0.8), ("step_time_ns", 0.9)):
            ratio = ours[key] / trl[key]
            check.hold(f"{key}, ratio", round(ratio, 4), f"at most {bound}", ratio <= bound or self.options.quick)

    def sanitizer(self, check, name):
        """compute-sanitizer over a short run."""
        tool = shutil.which("compute-sanitizer")
        if not self.is_gpu or tool is None:
            check.skipped = "it needs a GPU" if not self.is_gpu else "there is no compute-sanitizer on the path"
            return
        small = self.models / f"{name}_small.pt"
        self.offprof("zoo", "make", name, "-o", small, *MODELS[name][1].split())
        done = subprocess.run(
            [tool, "--error-exitcode", "9", self.options.program, "run", small, "--device", self.options.device,
             "--steps", "1", "-q"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        (self.out / "sanitizer.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        check.hold("exit_status", done.returncode, "0", done.returncode == 0)

    # --- All of it ---

    def do(self, name, work):
        check = Check(name)
        self.checks.append(check)
        began = time.monotonic()
        if began - self.began > 60 * self.options.minutes:
            check.skipped = f"{self.options.minutes} minutes were over"
        else:
            try:
                work(check)
            except (Failed, KeyError, OSError, ValueError) as error:
                check.misses.append(f"{type(error).__name__}: {error}")
        seconds = time.monotonic() - began
        check.figures["seconds"] = round(seconds, 1)
        print(f"{check.verdict():8}{seconds:7.1f} s  {name}", flush=True)
        for line in check.misses + ([check.skipped] if check.skipped else []):
            print(f"          {line}", flush=True)

    def all(self):
        first = next(iter(MODELS))
        self.do("suite", self.suite)
        for name in MODELS:
            self.do(f"memory, {name}", lambda check, name=name: self.memory(check, name))
            self.do(f"virtual memory, {name}", lambda check, name=name: self.virtual_memory(check, name))
        self.do(f"disk, {first}", lambda check: self.disk(check, first))
        self.do(f"tracing, {first}", lambda check: self.tracing(check, first))
        self.do(f"copies, {first}", lambda check: self.copies(check, first))
        self.do("against trl", self.against_trl)
        for name in MODELS:
            self.do(f"times, {name}", lambda check, name=name: self.times(check, name))
        self.do(f"sanitizer, {first}", lambda check: self.sanitizer(check, first))

    def write(self):
        environment = next(iter(self.runs.values()), {}).get("environment", {})
        result = {
            "schema": "offprof.gpu_check/1",
            "device": environment.get("device_name"),
            "torch_version": environment.get("torch_version"),
            "simulated": not self.is_gpu,
            "seconds": round(time.monotonic() - self.began, 1),
            "checks": [check.to_json() for check in self.checks],
        }
        (self.out / "gpu_check.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        rows = ["| check | verdict | figures |", "|---|---|---|"]
        for check in self.checks:
            figures = check.skipped or ", ".join(f"{key} {value}" for key, value in check.figures.items())
            rows.append(f"| {check.name} | {check.verdict()} | {figures} |")
        if not self.is_gpu:
            rows.append("\nOver a virtual GPU: none of this was measured on one.")
        (self.out / "table.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
        for trace in self.traces.iterdir():
            if trace.stat().st_size > MOST_TRACE_BYTES:
                trace.unlink()

    def misses(self):
        return [check for check in self.checks if check.misses]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--build")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


job = Job(parse_options())
try:
    job.all()
finally:
    job.write()
print(f"{job.out}/gpu_check.json, {job.out}/table.md")
sys.exit(1 if job.misses() else 0)
