"""Tests which sources scripts/run_clang_tidy.py checks again, with programs that imitate clang-tidy and clang."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "run_clang_tidy.py"

# Notes each check, and finds the word BAD. The source is the last argument.
CLANG_TIDY = """#!/bin/sh
if [ "$2" = --version ]; then cat "$FOLDER/version"; exit; fi
for source; do :; done
echo "$source" >>"$FOLDER/checked"
! grep BAD "$source"
"""
# The rule of a make file: the source includes header.h.
CLANG = """#!/bin/sh
printf 'object.o: %s \\\\\\n %s\\n' "$FOLDER/build/Unity/unity.cpp" "$FOLDER/header.h"
"""


class RunClangTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.source = self.write("build/Unity/unity.cpp", "good")
        self.write("header.h", "")
        self.write("version", "14")
        self.write_commands("-O2")
        for name, text in (("clang-tidy-14", CLANG_TIDY), ("clang++-14", CLANG)):
            self.write(f"bin/{name}", text).chmod(0o755)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_commands(self, option):
        command = f"c++ {option} -o unity.o -c {self.source}"
        entry = {"directory": str(self.folder / "build"), "command": command, "file": str(self.source)}
        self.write("build/compile_commands.json", json.dumps([entry]))

    def status(self):
        """Returns the exit status of a run."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        command = [sys.executable, str(SCRIPT), f"{self.folder}/build", "--cache", f"{self.folder}/cache"]
        environment = {**os.environ, "PATH": path, "FOLDER": str(self.folder)}
        return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode

    def checks(self):
        """Returns the number of checks so far."""
        return len((self.folder / "checked").read_text().splitlines())

    def test_a_source_without_findings_is_checked_once(self):
        self.assertEqual([self.status(), self.status()], [0, 0])
        self.assertEqual(self.checks(), 1)

    def test_a_source_with_findings_is_checked_each_time(self):
        self.source.write_text("BAD")
        self.assertEqual([self.status(), self.status()], [1, 1])
        self.assertEqual(self.checks(), 2)

    def test_a_source_is_checked_again_if_anything_that_the_check_reads_changes(self):
        changes = (
            lambda: self.source.write_text("also good"),
            lambda: self.write("header.h", "// a comment"),
            lambda: self.write("version", "14.0.1"),
            lambda: self.write_commands("-O3"),
        )
        self.status()
        for number, change in enumerate(changes, 2):
            change()
            self.assertEqual(self.status(), 0)
            self.assertEqual(self.checks(), number)

    def test_a_folder_that_is_not_configured_is_bad_usage(self):
        (self.folder / "build" / "compile_commands.json").unlink()
        self.assertEqual(self.status(), 2)


if __name__ == "__main__":
    unittest.main()
