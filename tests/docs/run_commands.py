"""Runs the `offprof` command lines in README.md and docs/ with a built program. Fails if one ends with another status than
its page states.

    run_commands.py --program BUILD/offprof --root SOURCES

The commands of a page run in a temporary folder in the page's order, so that they find the files of earlier commands.
The folder also contains tests/, and a small zoo model as MODEL.pt. All commands that commands.py finds are run, except
those in CANNOT_RUN. For commands within prose, only the options are checked, with the program's help.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commands

# Texts of commands that cannot run here, each with the reason. An entry that is on no page is a failure.
CANNOT_RUN = {}

SECONDS_PER_COMMAND = 800  # only for commands that never end, since a busy machine takes many times as long
SHOWN_LINES = 12


def pages(root):
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


class Folder:
    """The folder in which the commands of a page run."""

    def __init__(self, path, root, program):
        self.path = path
        self.environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}")
        (path / "tests").symlink_to(root / "tests")

    def run(self, line):
        """Returns the exit status (None after a timeout) and the output."""
        with subprocess.Popen(
            ["/bin/sh", "-c", line], cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as running:
            try:
                output, _ = running.communicate(timeout=SECONDS_PER_COMMAND)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)  # kills the shell and its children
                output, _ = running.communicate()
                return None, output.decode(errors="replace")
        return running.returncode, output.decode(errors="replace")


def run_page(page, found, root, program):
    """Returns a message for each command that does not end as the page states."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="offprof_docs_") as path:
        folder = Folder(Path(path), root, program)
        if any("MODEL.pt" in command.text for command in found):
            status, output = folder.run("offprof zoo make transformer -o MODEL.pt --batch 2")
            if status != 0:
                return [f"{page}: no model for MODEL.pt: {output}"]
        for command in found:
            if command.text in CANNOT_RUN:
                continue
            begin = time.monotonic()
            status, output = folder.run(command.text)
            ended = f"status {status}" if status is not None else f"no exit within {SECONDS_PER_COMMAND} s"
            where = f"{page}:{command.line}: {command.text}"
            print(f"{time.monotonic() - begin:6.1f} s  {ended}  {where}", flush=True)
            if status != command.status:
                tail = "\n    ".join(output.splitlines()[-SHOWN_LINES:])
                failures.append(f"{where}\n  {ended}, but the page states status {command.status}\n    {tail}")
    return failures


def unknown_options(page, text, program):
    """Returns a message for each option in prose that the program's help does not contain."""
    failures = []
    for mention in commands.mentions(text):
        words = mention.split()
        shown = subprocess.run([program, words[1], "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        known = shown.stdout
        if words[1] == "zoo" and len(words) > 2:
            known = subprocess.run([program, "zoo", words[2], "--help"], stdout=subprocess.PIPE, text=True, check=False).stdout
        if shown.returncode != 0:
            failures.append(f"{page}: `{mention}`: unknown command")
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", mention):
            if not re.search(rf"(?<![\w-]){option}(?![\w-])", known):
                failures.append(f"{page}: `{mention}`: offprof {words[1]} has no {option}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    options = parser.parse_args()
    root, program = options.root.resolve(), options.program.resolve()
    failures, seen = [], set()
    for path in pages(root):
        page, text = str(path.relative_to(root)), path.read_text(encoding="utf-8")
        found = commands.commands(page, text)
        seen.update(command.text for command in found)
        failures += run_page(page, found, root, program) + unknown_options(page, text, program)
    failures += [f"CANNOT_RUN lists a command that is on no page: {text}" for text in CANNOT_RUN if text not in seen]
    if not any(text not in CANNOT_RUN for text in seen):
        failures.append("no page has a command to run")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{len(seen)} commands, {len(CANNOT_RUN)} of them not run, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
