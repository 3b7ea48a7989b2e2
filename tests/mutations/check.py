"""Inserts the mutations of planted.json into a copy of the sources, one at a time, and checks that the tests catch each.

    check.py --root CHECKOUT --work FOLDER [--bugs FILE] [--small] [--only NAME]... [--jobs N] [--table FILE] [--fresh]

    --root   the checkout whose sources are copied
    --work   folder for the copy and its build; it is kept, so that the next run builds less
    --bugs   the table of mutations (default: planted.json beside this file); `programs` are test programs in the build
             folder, each optionally followed by a colon and a filter of cases
    --small  builds without LibTorch and without optimization, for mutations whose programs do not use LibTorch
    --only   runs only this mutation
    --jobs   number of parallel build jobs
    --table  file for the results as Markdown (default: standard output)
    --fresh  discards the results of an earlier run

Each result is appended to FOLDER/results.jsonl at once. An interrupted run continues after the last result, as long as
no source has changed.

Exit status: 0 all mutations are caught; 1 one is not; 2 the table is wrong: a mutation does not fit the sources or does
not compile, a program has no such cases, or the cases fail without a mutation.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

BUILD_SECONDS = 3 * 3600  # the first build, from an empty folder
CLEAN_SECONDS = 1800  # a test program without a mutation
HANG_FACTOR, HANG_SECONDS = 10, 60  # time limit with a mutation: factor on the time without one, plus seconds
MEMORY_BYTES = 8 << 30  # a mutation may allocate without end


class BadTable(Exception):
    """An entry of the table does not fit the sources."""


class DoesNotCompile(BadTable):
    pass


def run(command, folder, seconds, **options):
    """Returns (exit status, output); the status is None after a timeout. Kills all processes that the command started."""
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", start_new_session=True, **options) as child:  # fmt: skip
        try:
            output, _ = child.communicate(timeout=seconds)
            status = child.returncode
        except subprocess.TimeoutExpired:
            output, status = "", None
        except BaseException:
            kill_group(child)
            raise
        kill_group(child)
        return status, output


def kill_group(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Sources:
    """The copy of the sources and its build."""

    def __init__(self, options):
        self.folder = options.work / "source"
        self.build = self.folder / ("build-small" if options.small else "build")
        self.jobs = options.jobs
        self.clean_seconds = {}
        self.hash = self.copy(options.root)
        command = ["cmake", "--log-level=WARNING", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DOFFPROF_BUILD_BENCHMARKS=OFF",
                   "-DOFFPROF_WERROR=OFF", "-DCMAKE_UNITY_BUILD=OFF"]  # fmt: skip
        if options.small:
            command += ["-S", ".", "-B", str(self.build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DOFFPROF_WITH_ENGINE=OFF",
                        "-DCMAKE_CXX_FLAGS=-O0"]  # fmt: skip
        else:
            command += ["--preset", "release", f"-DOFFPROF_LIBTORCH_DIR={options.root / '.deps/libtorch'}"]
        self.must(command, BadTable)

    def copy(self, root):
        """Copies changed files only, so that the others are not compiled again. Returns a hash of all files."""
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True)  # fmt: skip
        digest = hashlib.sha256()
        for name in sorted(filter(None, listed.stdout.split("\0"))):
            source, copy = root / name, self.folder / name
            if not source.is_file():
                continue
            content = source.read_bytes()
            if not (name.startswith(("docs/", "tests/mutations/")) or name.endswith(".md")):
                digest.update(name.encode() + b"\0" + content)
            if not (copy.is_file() and content == copy.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        return digest.hexdigest()

    def must(self, command, error):
        status, output = run(command, self.folder, BUILD_SECONDS)
        if status != 0:
            raise error(f"{' '.join(map(str, command))}\n{output[-4000:]}")

    def make(self, programs):
        targets = sorted({pathlib.Path(program.split(":", 1)[0]).name for program in programs})
        command = ["cmake", "--build", str(self.build), "--parallel", str(self.jobs), "--target", *targets]
        self.must(command, DoesNotCompile)

    def failure(self, program, seconds):
        """Returns the first failing case, or the way in which the program failed; None if it passed."""
        path, *filters = program.split(":", 1)
        command = [str(self.build / path), "--gtest_fail_fast", "--gtest_brief=1"]
        command += [f"--gtest_filter={filters[0]}"] if filters else []
        status, output = run(command, self.build, seconds, preexec_fn=limit_memory)
        if status is None:
            return f"`{path}` timed out"
        if status != 0:
            failed = re.search(r"\[  FAILED  \] (\S+?),? ", output)
            return f"`{failed[1]}`" if failed else f"`{path}` exits with status {status}"
        if re.search(r"\] 0 tests from", output):
            raise BadTable(f"{program} does not have the selected cases")
        return None

    def try_clean(self, programs):
        """Checks that all programs pass without a mutation. Their times limit the runs with mutations."""
        for program in programs:
            began = time.monotonic()
            if failure := self.failure(program, CLEAN_SECONDS):
                raise BadTable(f"{failure} fails without any mutation")
            self.clean_seconds[program] = time.monotonic() - began

    def first_failure(self, programs):
        """Runs the fastest program first. Builds the next one only if it passes."""
        for program in sorted(programs, key=self.clean_seconds.__getitem__):
            self.make([program])
            if failure := self.failure(program, HANG_FACTOR * self.clean_seconds[program] + HANG_SECONDS):
                return failure
        return None


def planted(text, bug):
    """Returns the file's text with the mutation."""
    if text.count(bug["is"]) != 1:
        raise BadTable(f"{bug['name']}: its text occurs {text.count(bug['is'])} times in {bug['file']} instead of once")
    return text.replace(bug["is"], bug["becomes"])


def catch(sources, bug):
    """Returns the first test that catches the mutation, or None."""
    file = sources.folder / bug["file"]
    clean = file.read_text(encoding="utf-8")
    try:
        file.write_text(planted(clean, bug), encoding="utf-8")
        return sources.first_failure(bug["programs"])
    except DoesNotCompile as error:
        raise DoesNotCompile(f"{bug['name']}: {error}") from error
    finally:
        file.write_text(clean, encoding="utf-8")


class Results:
    """The results for each mutation, in a file that survives an interrupted run."""

    def __init__(self, file, sources_hash, fresh):
        self.file = file
        self.sources_hash = sources_hash
        self.known = {}
        if fresh:
            file.unlink(missing_ok=True)
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the line was cut off
            self.known[row["key"]] = row

    def key(self, bug):
        return hashlib.sha256((self.sources_hash + json.dumps(bug, sort_keys=True)).encode()).hexdigest()

    def find(self, bug):
        return self.known.get(self.key(bug))

    def add(self, bug, by, seconds):
        row = {"key": self.key(bug), "name": bug["name"], "by": by, "seconds": round(seconds, 1)}
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        return row


def bugs_of(options):
    table = json.loads(options.bugs.read_text(encoding="utf-8"))
    bugs = [bug for bug in table if not options.only or bug["name"] in options.only]
    for name in set(options.only) - {bug["name"] for bug in bugs}:
        raise BadTable(f"there is no mutation named '{name}'")
    return bugs


def check(options):
    bugs = bugs_of(options)
    sources = Sources(options)
    for bug in bugs:
        planted((sources.folder / bug["file"]).read_text(encoding="utf-8"), bug)
    results = Results(options.work / "results.jsonl", sources.hash, options.fresh)

    left = [bug for bug in bugs if not results.find(bug)]
    if left:
        programs = sorted({program for bug in left for program in bug["programs"]})
        sources.make(programs)
        sources.try_clean(programs)
    rows = {bug["name"]: results.find(bug) for bug in bugs}
    problems = []
    # Mutations of one file are neighbours, so that one build removes a mutation and inserts the next one.
    for bug in sorted(left, key=lambda bug: bug["file"]):
        began = time.monotonic()
        try:
            by = catch(sources, bug)
        except DoesNotCompile as error:  # the results of the others are still useful
            problems.append(str(error))
            print(f"{'WRONG':15}  {error}", file=sys.stderr, flush=True)
            continue
        row = rows[bug["name"]] = results.add(bug, by, time.monotonic() - began)
        print(
            f"{'caught' if by else 'MISSED':7}{row['seconds']:6.0f} s  {bug['name']}: {by or 'no test'}",
            file=sys.stderr,
            flush=True,
        )
    if problems:
        raise BadTable(f"{len(problems)} of {len(bugs)} mutations do not compile:\n" + "\n".join(problems))
    return [(bug, rows[bug["name"]]) for bug in bugs]


def write(rows, out):
    print("| mutation | file | first test to catch it |\n| --- | --- | --- |", file=out)
    for bug, row in rows:
        print(f"| {bug['name']} | `{bug['file']}` | {row['by'] or '**none**'} |", file=out)


def say_times(rows, seconds):
    caught = sum(1 for _, row in rows if row["by"])
    slowest = sorted(rows, key=lambda pair: -pair[1]["seconds"])[:5]
    print(f"{caught} of {len(rows)} caught. This run took {seconds / 60:.0f} minutes; all mutations, including those "
          f"of earlier runs, took {sum(row['seconds'] for _, row in rows) / 60:.0f} minutes. The slowest mutations:", file=sys.stderr)  # fmt: skip
    for bug, row in slowest:
        print(f"{row['seconds']:6.0f} s  {bug['name']}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--bugs", type=pathlib.Path, default=pathlib.Path(__file__).parent / "planted.json")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=argparse.FileType("w", encoding="utf-8"), default=sys.stdout)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    options.root, options.work = options.root.resolve(), options.work.resolve()
    began = time.monotonic()
    try:
        rows = check(options)
    except BadTable as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    write(rows, options.table)
    say_times(rows, time.monotonic() - began)
    return 0 if all(row["by"] for _, row in rows) else 1


sys.exit(main())
