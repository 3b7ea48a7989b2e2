"""Plants the bugs of planted.json into a copy of the sources, one at a time, and shows that the tests catch each.

    check.py --root CHECKOUT --work FOLDER [--only NAME]... [--jobs N] [--table FILE]

    --root   the checkout whose sources are copied
    --work   where the copy and its build go; kept, so that the next time builds less
    --only   these bugs alone
    --jobs   of the build
    --table  where the table goes, as Markdown (standard output)

Exit status: 0 each is caught, 1 one is not, 2 the table of bugs is wrong: one does not fit the sources, does not compile, or
its tests fail without it.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

SECONDS_A_PROGRAM = 600  # a test program that takes longer hangs


class BadTable(Exception):
    """What stands in planted.json does not fit the sources."""


class Sources:
    """The copy, and its build."""

    def __init__(self, options):
        self.folder = options.work / "source"
        self.build = self.folder / "build"
        self.jobs = options.jobs
        self.copy(options.root)
        self.run("cmake", "--preset", "release", "--log-level=WARNING", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
                 f"-DOFFPROF_LIBTORCH_DIR={options.root / '.deps/libtorch'}", "-DOFFPROF_BUILD_BENCHMARKS=OFF",
                 "-DOFFPROF_WERROR=OFF", "-DCMAKE_UNITY_BUILD=OFF")  # fmt: skip

    def copy(self, root):
        """Files that are the same keep their time, so that they are not compiled again."""
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True)  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            source, copy = root / name, self.folder / name
            if source.is_file() and not (copy.is_file() and source.read_bytes() == copy.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)

    def run(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BadTable(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}")

    def make(self, programs):
        targets = {pathlib.Path(program.split(":", 1)[0]).name for program in programs}
        self.run("cmake", "--build", "--preset", "release", "--parallel", str(self.jobs), "--target", *targets)

    def first_failure(self, programs):
        """What first says that something is wrong; None: nothing does."""
        for program in programs:
            path, *filters = program.split(":", 1)
            command = [str(self.build / path), "--gtest_fail_fast", "--gtest_brief=1"]
            command += [f"--gtest_filter={filters[0]}"] if filters else []
            try:
                done = subprocess.run(command, cwd=self.build, capture_output=True, text=True, check=False,
                                      timeout=SECONDS_A_PROGRAM)  # fmt: skip
            except subprocess.TimeoutExpired:
                return f"`{path}` hangs"
            if done.returncode != 0:
                failed = re.search(r"\[  FAILED  \] (\S+?),? ", done.stdout)
                return f"`{failed[1]}`" if failed else f"`{path}` dies of status {done.returncode}"
        return None


def planted(text, bug):
    """The file's text with the bug in it."""
    if text.count(bug["is"]) != 1:
        raise BadTable(f"{bug['name']}: its text is {text.count(bug['is'])} times in {bug['file']}, not once")
    return text.replace(bug["is"], bug["becomes"])


def catch(sources, bug):
    """Who catches the bug; None: nobody."""
    file = sources.folder / bug["file"]
    clean = file.read_text(encoding="utf-8")
    try:
        file.write_text(planted(clean, bug), encoding="utf-8")
        sources.make(bug["programs"])
        return sources.first_failure(bug["programs"])
    finally:
        file.write_text(clean, encoding="utf-8")


def check(options):
    table = json.loads((pathlib.Path(__file__).parent / "planted.json").read_text(encoding="utf-8"))
    bugs = [bug for bug in table if not options.only or bug["name"] in options.only]
    for name in set(options.only) - {bug["name"] for bug in bugs}:
        raise BadTable(f"no bug is called {name}")
    sources = Sources(options)
    for bug in bugs:
        planted((sources.folder / bug["file"]).read_text(encoding="utf-8"), bug)

    programs = sorted({program for bug in bugs for program in bug["programs"]})
    sources.make(programs)
    if failure := sources.first_failure(programs):
        raise BadTable(f"without any planted bug {failure} fails")

    rows = []
    for bug in bugs:
        began = time.monotonic()
        by = catch(sources, bug)
        rows.append((bug, by))
        print(f"{'caught' if by else 'MISSED':7}{time.monotonic() - began:6.0f} s  {bug['name']}: {by or 'nobody'}", file=sys.stderr, flush=True)
    return rows


def write(rows, out):
    print("| planted bug | in | first to catch it |\n| --- | --- | --- |", file=out)
    for bug, by in rows:
        print(f"| {bug['name']} | `{bug['file']}` | {by or '**nobody**'} |", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=argparse.FileType("w", encoding="utf-8"), default=sys.stdout)
    options = parser.parse_args()
    try:
        rows = check(options)
    except BadTable as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    write(rows, options.table)
    return 0 if all(by for _, by in rows) else 1


sys.exit(main())
