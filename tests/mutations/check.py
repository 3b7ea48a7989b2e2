"""Inserts the mutations of planted.json into a copy of the sources, one at a time, and checks that the tests catch each.

    check.py --root CHECKOUT --work FOLDER [--bugs FILE] [--small] [--only NAME]... [--part I/N] [--jobs N]
             [--results FILE] [--table FILE] [--fresh]
    check.py --root CHECKOUT --fits [--bugs FILE]

    --root     the checkout whose sources are copied
    --work     folder for the copy and its build; it is kept, so that the next run builds less
    --bugs     the table of mutations (default: planted.json beside this file); `programs` are test programs in the build
               folder, each optionally followed by a colon and a filter of cases
    --small    builds without LibTorch and without optimization, for mutations whose programs do not use LibTorch
    --only     runs only this mutation
    --part     runs only part I of N parts of about the same size; mutations of one file stay together where possible
    --jobs     number of parallel build jobs
    --results  file of the results (default: FOLDER/results.jsonl)
    --table    file for the table of results as Markdown (default: standard output)
    --fresh    discards the results of earlier runs
    --fits     only compares the table with the sources, in a second: each text occurs once, and each program and each
               filter of cases exists. Builds and runs nothing

Each result is appended to the results at once. A later run continues after the last result, whatever part it runs, as
long as no source has changed. So the parts can run one by one; the table after each has the results of all.

Exit status: 0 all mutations that were to run are caught; 1 one is not; 2 the table is wrong: a mutation does not fit the
sources or does not compile, a program has no such cases, or the cases fail without a mutation.
"""

import argparse
import contextlib
import fnmatch
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
        digest = hashlib.sha256()
        for name in tracked(root):
            source, copy = root / name, self.folder / name
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


def tracked(root, *patterns):
    """Returns the names of the checkout's files, relative to it, including new files unless git ignores them."""
    command = [
        "git",
        "-C",
        root,
        "-c",
        f"safe.directory={root}",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *patterns,
    ]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in sorted(set(filter(None, listed.split("\0")))) if (root / name).is_file()]


def planted(text, bug):
    """Returns the file's text with the mutation."""
    if bug["is"] == bug["becomes"]:
        raise BadTable(f"{bug['name']}: it changes nothing in {bug['file']}")
    if text.count(bug["is"]) != 1:
        raise BadTable(f"{bug['name']}: its text occurs {text.count(bug['is'])} times in {bug['file']} instead of once")
    return text.replace(bug["is"], bug["becomes"])


class Tests:
    """The test programs that the CMake lists of a checkout declare, and the cases in its sources."""

    DECLARED = re.compile(r"\b(?:offprof_\w*test|add_executable)\(\s*(\w+)")
    CASE = re.compile(
        r"^\s*(?:TYPED_)?(?:TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)(?:_F|_P)?\(\s*(\w+),\s*(\w+)", re.MULTILINE
    )

    def __init__(self, root):
        def texts(*patterns):
            for name in tracked(root, *patterns):
                yield (root / name).read_text(encoding="utf-8")

        self.programs = {name for text in texts("*CMakeLists.txt", "*.cmake") for name in self.DECLARED.findall(text)}
        self.cases = {f"{suite}.{case}" for text in texts("*.cpp", "*.h") for suite, case in self.CASE.findall(text)}

    def problem(self, program):
        """Returns why the program or its filter cannot be right; an empty string if it can."""
        path, *filters = program.split(":", 1)
        if pathlib.Path(path).name not in self.programs:
            return f"no CMakeLists.txt declares the test program {path}"
        for pattern in filters[0].split("-")[0].split(":") if filters else []:
            # The names of parameterized cases have more parts than the sources show.
            if "/" not in pattern and not any(fnmatch.fnmatchcase(case, pattern) for case in self.cases):
                return f"no test case fits the filter {pattern} of {path}"
        return ""


def misfits(bugs, root):
    """Returns a sentence for each entry that does not fit the sources or the tests of the checkout."""
    problems = []
    tests = Tests(root)
    for bug in bugs:
        try:
            planted((root / bug["file"]).read_text(encoding="utf-8"), bug)
        except (BadTable, OSError) as error:
            problems.append(str(error))
        found = (f"{bug['name']}: {problem}" for problem in map(tests.problem, bug["programs"]) if problem)
        problems += found
        if not bug["programs"]:
            problems.append(f"{bug['name']}: no test program is named")
    names = [bug["name"] for bug in bugs]
    problems += [f"{name}: the name occurs twice" for name in sorted({name for name in names if names.count(name) > 1})]
    return problems


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
        row = self.known[self.key(bug)] = {
            "key": self.key(bug),
            "name": bug["name"],
            "by": by,
            "seconds": round(seconds, 1),
        }
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
        return row


def part_of(bugs, part):
    """Returns part I of N, of mutations in the order of their files."""
    number, parts = part
    ordered = sorted(bugs, key=lambda bug: bug["file"])
    return ordered[len(ordered) * (number - 1) // parts : len(ordered) * number // parts]


def select(bugs, options):
    """Returns the mutations that are to run."""
    for name in set(options.only) - {bug["name"] for bug in bugs}:
        raise BadTable(f"there is no mutation named '{name}'")
    return part_of([bug for bug in bugs if not options.only or bug["name"] in options.only], options.part)


def run_mutations(bugs, sources, results):
    """Runs the mutations that have no result."""
    # Mutations of one file are neighbours, so that one build removes a mutation and inserts the next one.
    left = sorted((bug for bug in bugs if not results.find(bug)), key=lambda bug: bug["file"])
    if left:
        programs = sorted({program for bug in left for program in bug["programs"]})
        sources.make(programs)
        sources.try_clean(programs)
    problems = []
    for number, bug in enumerate(left, 1):
        began = time.monotonic()
        try:
            by = catch(sources, bug)
        except DoesNotCompile as error:  # the results of the others are still useful
            problems.append(str(error))
            print(f"{'WRONG':15}  {error}", file=sys.stderr, flush=True)
            continue
        row = results.add(bug, by, time.monotonic() - began)
        print(f"{number}/{len(left)} {'caught' if by else 'SURVIVED':8}{row['seconds']:6.0f} s  {bug['name']}: {by or 'no test'}",
              file=sys.stderr, flush=True)  # fmt: skip
    if problems:
        raise BadTable(f"{len(problems)} of {len(left)} mutations do not compile:\n" + "\n".join(problems))


def write_table(bugs, results, out):
    print("| mutation | file | result | first test to catch it |\n| --- | --- | --- | --- |", file=out)
    for bug in bugs:
        row = results.find(bug)
        result = "not run" if row is None else "caught" if row["by"] else "**survived**"
        print(f"| {bug['name']} | `{bug['file']}` | {result} | {row['by'] or '' if row else ''} |", file=out)


def print_summary(bugs, results, seconds):
    rows = [row for row in map(results.find, bugs) if row]
    caught = sum(1 for row in rows if row["by"])
    print(f"{caught} caught, {len(rows) - caught} survived, {len(bugs) - len(rows)} not run, of {len(bugs)}. This run took "
          f"{seconds / 60:.0f} minutes; all mutations with a result, including those of earlier runs, took "
          f"{sum(row['seconds'] for row in rows) / 60:.0f} minutes. The slowest:", file=sys.stderr)  # fmt: skip
    for row in sorted(rows, key=lambda row: -row["seconds"])[:5]:
        print(f"{row['seconds']:6.0f} s  {row['name']}", file=sys.stderr)


def check(options):
    """Returns the exit status."""
    began = time.monotonic()
    bugs = json.loads(options.bugs.read_text(encoding="utf-8"))
    selected = select(bugs, options)
    if problems := misfits(bugs, options.root):
        raise BadTable("\n".join(problems))
    if options.fits:
        print(f"{len(bugs)} mutations fit the sources")
        return 0
    sources = Sources(options)
    results = Results(options.results or options.work / "results.jsonl", sources.hash, options.fresh)
    run_mutations(selected, sources, results)
    shown = [bug for bug in bugs if bug in selected] if options.only else bugs
    write_table(shown, results, options.table)
    print_summary(shown, results, time.monotonic() - began)
    return 0 if all(results.find(bug)["by"] for bug in selected) else 1


def parse_part(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is not I/N with 1 <= I <= N, such as 2/8")
    return int(match[1]), int(match[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--bugs", type=pathlib.Path, default=pathlib.Path(__file__).parent / "planted.json")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--part", type=parse_part, default=(1, 1))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", type=argparse.FileType("w", encoding="utf-8"), default=sys.stdout)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--fits", action="store_true")
    options = parser.parse_args()
    if not options.work and not options.fits:
        parser.error("--work is required, except with --fits")
    options.root = options.root.resolve()
    options.work = options.work.resolve() if options.work else None
    try:
        return check(options)
    except BadTable as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
