"""Draws mutants of the sources at random, module by module, and prints those that compile as entries for planted.json.

    draw.py --root CHECKOUT --build BUILD [--seed N] [--count MODULE=N]... > drawn.json

    --root   the checkout whose sources are mutated; the script only reads them
    --build  a configured build folder with compile_commands.json: a mutant counts only if its file compiles there
    --seed   seed of the random numbers (default 21)
    --count  number of mutants of the module that must compile; without it, all modules with the counts in MODULES

A draw picks one of the lines of the module's sources that the tool can change, all with the same probability, and then
one mutant of the line. The mutants come from universalmutator (MIT licence; `pip install universalmutator==1.14.1`),
without its rules that comment out or remove lines that do not compile. The numbers of drawn mutants, and of those that
did not compile, are printed to standard error.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import io
import json
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

# For each module: patterns of its sources, the number of mutants to draw, and the test programs that should catch them.
MODULES = {
    "tuner": (["simulator/tuner/*.cpp", "simulator/tuner/*.h", "simulator/tuner/*/*.cpp", "simulator/tuner/*/*.h"], 14,
              ["tests/tuner_test", "tests/simulator_test", "tests/cli_test"]),
    "replay": (["simulator/steps/cache_replay.cpp", "simulator/steps/dense_reloads.cpp", "simulator/replay/replay.cpp", "simulator/replay/step.cpp",
                "simulator/steps/timeline_view.cpp", "simulator/steps/trace_steps.cpp", "simulator/steps/views.cpp",
                "simulator/replay/virtual_executor.cpp", "simulator/replay/virtual_memory.h"], 14,
               ["tests/simulator_test", "tests/tuner_test", "tests/cli_test"]),
    "clocks": (["profiler/recording/clock_offset.cpp", "simulator/clock/virtual_clock.h", "simulator/replay/replayed_disk.h",
                "engine/devices/virtual_gpu/races/stream_clocks.cpp", "engine/devices/virtual_gpu/races/stream_clocks.h",
                "engine/devices/virtual_gpu/state/virtual_time.cpp"], 10,
               ["tests/simulator_test", "tests/recording_test", "tests/virtual_gpu_test", "tests/tuner_test"]),
    "accuracy": (["profiler/recording/interleaved.cpp", "simulator/steps/accuracy.cpp", "simulator/steps/policy_sample.cpp",
                  "simulator/steps/time_doubt.cpp"], 10,
                 ["tests/simulator_test", "tests/recording_test", "tests/cli_test"]),
    "calibration": (["profiler/recording/program_times.cpp", "profiler/recording/tracing_cost.cpp", "traces/model/calibration.cpp",
                     "traces/format/calibration_io.cpp"], 8,
                    ["tests/traces_test", "tests/recording_test", "tests/simulator_test"]),
    "virtual GPU": ([f"engine/devices/virtual_gpu/{folder}/*.{end}" for folder in ("model", "races", "state") for end in ("cpp", "h")], 14,
                    ["tests/gpu_model_test", "tests/virtual_gpu_test", "tests/virtual_streams_test"]),
    "runtime": (["engine/devices/virtual_gpu/runtime/*.cpp"], 8, ["tests/cudart_test", "tests/virtual_torch_test"]),
    "traces": (["traces/*/*.cpp"], 16, ["tests/traces_test", "tests/simulator_test", "tests/cli_test"]),
    "command line": (["cli/*.cpp", "cli/*/*.cpp"], 16, ["tests/cli_test"]),
}  # fmt: skip
NOT_DRAWN = ["*_test.cpp", "*/fake_*", "*_fixture.h", "*_absent.cpp", "*/calibration*_test.cpp"]
RULES = ["universal.rules", "c_like.rules", "c.rules", "cpp.rules"]
NOT_CODE = [
    r"^\s*(//|#)",
    r"^\s*(namespace|using|template|class|struct)\b",
    r"^\s*[})\];]*\s*(//.*)?$",
    "static_assert",
]


def universal_mutants(lines):
    """Returns (line number from 1, mutated line) for every mutant."""
    from universalmutator import mutator  # imported here, so that --help works without it

    with contextlib.redirect_stdout(io.StringIO()):
        found = mutator.mutants_regexp(lines, RULES, ignorePatterns=NOT_CODE, ignoreStringOnly=True)
    return [(mutant[0], mutant[1]) for mutant in found]


def replacement(lines, number, mutated):
    """Returns the shortest sequence of lines ending with the mutated one that is unique in the file, and its replacement."""
    text = "".join(lines)
    first = number - 1
    while text.count("".join(lines[first:number])) != 1:
        first -= 1
    return "".join(lines[first:number]), "".join(lines[first : number - 1]) + mutated


class Compiler:
    def __init__(self, root, build):
        self.root = root
        self.commands: dict[str, dict[str, str]] = {}
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            name = str(pathlib.Path(entry["file"]).resolve())
            self.commands.setdefault(name, entry)

    def compiles(self, file, text):
        """Returns true if the file compiles with this text. A header is compiled as if it were a source file."""
        source = str((self.root / file).resolve())
        entry = self.commands[source if source in self.commands else min(self.commands)]
        command = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
        for flag in ("-o", "-MF", "-MT", "-MQ"):
            if flag in command:
                del command[command.index(flag) : command.index(flag) + 2]
        left_out = ("-c", "-MD", "-Werror", entry["file"])
        with tempfile.TemporaryDirectory() as folder:
            mutant = pathlib.Path(folder) / "mutant.cpp"
            mutant.write_text(text, encoding="utf-8")
            command = [word for word in command if word not in left_out]
            command += ["-w", "-fsyntax-only", f"-I{(self.root / file).parent}", str(mutant)]
            return subprocess.run(command, cwd=entry["directory"], capture_output=True, check=False).returncode == 0


def files_of(root, patterns):
    listed = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    for name in sorted(listed):
        in_module = any(fnmatch.fnmatchcase(name, p) and name.count("/") == p.count("/") for p in patterns)
        if in_module and not any(fnmatch.fnmatchcase(name, p) for p in NOT_DRAWN):
            yield name


def candidates(root, patterns):
    """Returns a dictionary from (file, line number) to the mutants of the line."""
    found: dict[tuple[str, int], list[str]] = {}
    for file in files_of(root, patterns):
        lines = (root / file).read_text(encoding="utf-8").splitlines(keepends=True)
        for number, mutated in universal_mutants(lines):
            found.setdefault((file, number), []).append(mutated)
    return found


def draw(module, found, options, compiler):
    _, count, programs = MODULES[module]
    count = options.counts.get(module, count)
    numbers = random.Random(f"{options.seed} {module}")
    places = sorted(found)
    numbers.shuffle(places)
    drawn: list[dict[str, object]] = []
    broken = 0
    for file, line in places:
        if len(drawn) == count:
            break
        mutated = numbers.choice(found[file, line])
        lines = (options.root / file).read_text(encoding="utf-8").splitlines(keepends=True)
        original, becomes = replacement(lines, line, mutated)
        if compiler.compiles(file, "".join(lines).replace(original, becomes)):
            drawn.append({"name": f"{module}: {file}:{line}", "file": file, "is": original, "becomes": becomes,
                          "programs": programs})  # fmt: skip
        else:
            broken += 1
    print(f"{module}: {len(places)} lines, {len(drawn) + broken} drawn, {broken} do not compile, {len(drawn)} remain",
          file=sys.stderr, flush=True)  # fmt: skip
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--count", action="append", default=[], metavar="MODULE=N")
    options = parser.parse_args()
    options.counts = {name: int(count) for name, count in (word.split("=") for word in options.count)}
    modules = [module for module in MODULES if not options.counts or module in options.counts]
    compiler = Compiler(options.root, options.build)
    found = [candidates(options.root, MODULES[module][0]) for module in modules]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda module, places: draw(module, places, options, compiler), modules, found)
        drawn = [mutant for part in parts for mutant in part]
    json.dump(drawn, sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
