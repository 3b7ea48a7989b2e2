"""Runs the `offprof` command lines of README.md and docs/ with a built program. Fails where one does not end as its page says, or
prints other words than the page quotes (see quotes.py).

    run_commands.py --program BUILD/offprof --root SOURCES [--shard K/N]

--shard K/N runs the commands of part K of N parts of the pages, which have about as many commands.

Each page has a temporary folder of its own, in which its commands run in the page's order, so that they find the files that
earlier ones made; docs/ and tests/ are there too, a small model of the zoo as MODEL.pt, and a training program as train.py. `python` is that of
scripts/setup.sh --python, if it is installed. The commands that commands.py finds are run, except
those that need a GPU and those in cannot_run.json. Commands within prose are not run: their options are looked up in the help of the program.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commands
import quotes

# Below the root: a JSON object of commands that do not run here, each with the reason. One that no page has is a failure.
CANNOT_RUN = Path("tests") / "docs" / "cannot_run.json"

# A step takes a few milliseconds. A recording calibrates longer steps for seconds each time.
SMALL_MODEL = "--batch 2 --seq 32 --width 64"

SECONDS_PER_COMMAND = 800  # only against what never ends: a busy machine takes many times as long
SHOWN_LINES = 12


def pages(root):
    """The README and every page of docs/, its subfolders included."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


class Folder:
    """Where the commands of a page run."""

    def __init__(self, path, root, program):
        self.path = path
        python = root / ".deps" / "python" / "bin"
        self.environment = dict(os.environ, PATH=f"{program.parent}:{python}:{os.environ['PATH']}")
        for shared in ("docs", "tests"):
            (path / shared).symlink_to(root / shared)
        (path / "train.py").symlink_to(root / "python" / "tests" / "programs" / "mlp.py")
        self.has_python = python.is_dir()

    def run(self, line):
        """The exit status, and what was printed."""
        with subprocess.Popen(
            ["/bin/sh", "-c", line],
            cwd=self.path,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running:
            try:
                output, _ = running.communicate(timeout=SECONDS_PER_COMMAND)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)  # of the shell and what it runs
                output, _ = running.communicate()
                return None, output.decode(errors="replace")
        return running.returncode, output.decode(errors="replace")


def cannot_run(root):
    """The commands of CANNOT_RUN, by their text, with the reason; none where there is no such file."""
    path = root / CANNOT_RUN
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def run_page(page, found, root, program):
    """What does not end as the page says, a message each."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="offprof_docs_") as path:
        folder = Folder(Path(path), root, program)
        if any("MODEL.pt" in command.text for command in found):
            status, output = folder.run(f"offprof zoo make transformer -o MODEL.pt {SMALL_MODEL}")
            if status != 0:
                return [f"{page}: no model for MODEL.pt: {output}"]
        for command in found:
            if "train.py" in command.text and not folder.has_python:
                print(f"not run: {command.text}; scripts/setup.sh --python installs its Python", flush=True)
                continue
            begin = time.monotonic()
            status, output = folder.run(command.text)
            ended = f"status {status}" if status is not None else f"no exit within {SECONDS_PER_COMMAND} s"
            where = f"{page}:{command.line}: {command.text}"
            print(f"{time.monotonic() - begin:6.1f} s  {ended}  {where}", flush=True)
            if status != command.status:
                tail = "\n    ".join(output.splitlines()[-SHOWN_LINES:])
                failures.append(f"{where}\n  {ended}, but the page states status {command.status}\n    {tail}")
                continue
            for number, line in quotes.stale_lines(command.quoted, output):
                failures.append(f"{page}:{number}: {command.text} does not print: {line}")
    return failures


def unknown_options(page, text, program):
    """Options of commands within prose that the program's help does not have, a message each."""
    failures = []
    for mention in commands.mentions(text):
        words = mention.split()
        shown = subprocess.run(
            [program, words[1], "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        known = shown.stdout
        if words[1] == "zoo" and len(words) > 2:
            known = subprocess.run(
                [program, "zoo", words[2], "--help"], stdout=subprocess.PIPE, text=True, check=False
            ).stdout
        if shown.returncode != 0:
            failures.append(f"{page}: `{mention}`: unknown command")
        own_words = mention.split(" -- ")[0]  # the rest are the script's
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", own_words):
            if not re.search(rf"(?<![\w-]){option}(?![\w-])", known):
                failures.append(f"{page}: `{mention}`: offprof {words[1]} has no {option}")
    return failures


def shard_of(found, shard, shards):
    """The pages of a part, as a subset of `found`, whose values are commands: the parts have about as many commands."""
    loads = [0] * shards
    chosen = {}
    for page, page_commands in sorted(found.items(), key=lambda entry: -len(entry[1])):
        part = loads.index(min(loads))
        loads[part] += len(page_commands) + 1
        if part == shard:
            chosen[page] = page_commands
    return chosen


def parse_shard(text):
    """Returns the number of a part, from 0, and the number of parts."""
    shard, _, shards = text.partition("/")
    if not 1 <= int(shard) <= int(shards):
        raise argparse.ArgumentTypeError(f"{text} is not a part such as 1/4")
    return int(shard) - 1, int(shards)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--shard", type=parse_shard, default=(0, 1))
    options = parser.parse_args()
    root, program = options.root.resolve(), options.program.resolve()
    texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in pages(root)}
    found = {page: commands.commands(page, text) for page, text in texts.items()}
    every = [command for of_page in found.values() for command in of_page]
    not_run = set(cannot_run(root)) | {command.text for command in every if command.needs_gpu}
    failures = []
    for page, of_page in shard_of(found, *options.shard).items():
        can_run = [command for command in of_page if command.text not in not_run]
        failures += run_page(page, can_run, root, program) + unknown_options(page, texts[page], program)
    seen = {command.text for command in every}
    failures += [f"{CANNOT_RUN} lists a command that is on no page: {text}" for text in sorted(not_run - seen)]
    if seen <= not_run:
        failures.append("no page has a command to run")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(seen)} commands on all pages, {len(not_run)} of them not run, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
