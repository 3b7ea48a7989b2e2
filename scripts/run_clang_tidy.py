#!/usr/bin/env python3
"""Runs clang-tidy on the sources of a build folder, except those whose check would read the same as an earlier one.

  scripts/run_clang_tidy.py BUILD [--jobs N] [--cache FOLDER]

  BUILD            a configured build folder with compile_commands.json
  --jobs N         processes at a time (default: one per processor)
  --cache FOLDER   contains an empty file for each source without findings, named by a hash of all that clang-tidy reads:
                   the source, every file that it includes, the compiler's options, .clang-tidy, and clang-tidy's
                   version (default: offprof/clang-tidy in $XDG_CACHE_HOME, or in ~/.cache)

The hash does not depend on the paths of the repository and of BUILD. Checks the sources of the repository and the unity
sources that CMake generates from them.

Exit status: 0 no findings; 1 findings; 2 there is no BUILD/compile_commands.json.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLANG_TIDY = ["clang-tidy-14", "--quiet"]
# The build folder has the options of g++.
EXTRA_ARGUMENTS = ["-Wno-unknown-warning-option", "-Wno-error"]
# The number of findings in all headers, which clang-tidy prints although it hides those of other projects.
TALLY = re.compile(r"^\d+ (warnings?|errors?)( and \d+ errors?)? generated\.$")
# A hash that no check has met for so long is removed.
MOST_DAYS = 60


def is_ours(file: str, build: Path) -> bool:
    """Returns true for a unity source and for a source of a module; false for other generated files."""
    if "/Unity/" in file:
        return file.startswith(f"{build}/")
    return re.match(rf"{re.escape(str(ROOT))}/(cli|engine|profiler|simulator|traces)/", file) is not None


def files_read(command: list[str], folder: str) -> list[str]:
    """Returns the source and the files that it includes, as clang finds them."""
    at = command.index("-o")
    listing = ["clang++-14", *EXTRA_ARGUMENTS, *command[1:at], *command[at + 2 :], "-M"]
    listing.remove("-c")
    rule = subprocess.run(listing, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    return rule.replace("\\\n", " ").split()[1:]


class Checker:
    """Checks sources of one build folder."""

    def __init__(self, build: Path, cache: Path) -> None:
        """Creates the cache's folder if there is none."""
        self.build = build
        self.cache = cache
        self.cache.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([*CLANG_TIDY, "--version"], stdout=subprocess.PIPE, check=True).stdout
        self.settings = version + (ROOT / ".clang-tidy").read_bytes() + " ".join(EXTRA_ARGUMENTS).encode()
        self.contents: dict[str, bytes] = {}  # hash of each file read so far

    def without_paths(self, text: bytes) -> bytes:
        """Replaces the paths of the build folder and of the repository."""
        return text.replace(str(self.build).encode(), b"BUILD").replace(str(ROOT).encode(), b"ROOT")

    def hash_of(self, file: str) -> bytes:
        """Returns the hash of a file's content."""
        if file not in self.contents:
            self.contents[file] = hashlib.sha256(self.without_paths(Path(file).read_bytes())).digest()
        return self.contents[file]

    def key(self, entry: dict[str, str]) -> str:
        """Returns the hash of all that the check of an entry of compile_commands.json reads."""
        whole = hashlib.sha256(self.settings)
        whole.update(self.without_paths(entry["command"].encode()))
        for file in files_read(shlex.split(entry["command"]), entry["directory"]):
            whole.update(self.without_paths(os.path.realpath(file).encode()) + self.hash_of(file))
        return whole.hexdigest()

    def has_findings(self, entry: dict[str, str]) -> bool:
        """Checks an entry of compile_commands.json, and prints the findings."""
        known = self.cache / self.key(entry)
        if known.exists():
            known.touch()
            return False
        command = [
            *CLANG_TIDY,
            "-p",
            str(self.build),
            *(f"--extra-arg={one}" for one in EXTRA_ARGUMENTS),
            entry["file"],
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        errors = [line for line in done.stderr.splitlines(keepends=True) if not TALLY.match(line)]
        print(done.stdout + "".join(errors), end="", flush=True)
        if done.returncode == 0 and not done.stdout:
            known.touch()
            return False
        return True

    def remove_old_hashes(self) -> None:
        """Removes hashes that no check has met for MOST_DAYS."""
        for known in self.cache.iterdir():
            if time.time() - known.stat().st_mtime > MOST_DAYS * 24 * 3600:
                known.unlink(missing_ok=True)


def main() -> int:
    """Checks all sources. Returns the exit status."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cache", type=Path, default=caches / "offprof" / "clang-tidy")
    options = parser.parse_args()
    build = options.build.resolve()
    commands = build / "compile_commands.json"
    if not commands.exists():
        print(f"run_clang_tidy.py: no such file: {commands}", file=sys.stderr)
        return 2
    entries = [entry for entry in json.loads(commands.read_text()) if is_ours(entry["file"], build)]
    checker = Checker(build, options.cache)
    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(checker.has_findings, entries))
    checker.remove_old_hashes()
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
