"""Tests of the completion scripts in the shells themselves: completion_test.py PROGRAM."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()

# Answers the words that bash would offer for a command line, with the words as bash has split them.
BASH_DRIVER = """
eval "$(offprof completion bash)"
compopt() { :; }
COMP_LINE=$1
read -ra COMP_WORDS <<<"$(sed 's/[=:]/ & /g' <<<"$1")"
case $1 in *' '|*=|*:) COMP_WORDS+=('') ;; esac
case $1 in *=|*:) unset 'COMP_WORDS[-1]' ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
part=${COMP_WORDS[COMP_CWORD]}
case $part in [=:]) part= ;; esac
_offprof offprof "$part" ''
printf '%s\\n' "${COMPREPLY[@]}"
"""


class ShellTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("trace.json", "tensor.pt"):
            (Path(self.folder) / name).touch()
        (Path(self.folder) / "results").mkdir()

    def run_shell(self, *command: str) -> str:
        environment = {
            **os.environ,
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "HOME": self.folder,
            "TERM": "dumb",
        }
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment, cwd=self.folder, timeout=60
        ).stdout


class BashTest(ShellTest):
    def offered(self, line: str) -> list[str]:
        return self.run_shell("bash", "--norc", "-c", BASH_DRIVER, "bash", line).split()

    def test_commands(self) -> None:
        self.assertEqual(self.offered("offprof sim"), ["simulate"])

    def test_options(self) -> None:
        self.assertEqual(self.offered("offprof gate --upd"), ["--update"])

    def test_enumerated_values(self) -> None:
        self.assertEqual(self.offered("offprof view --format "), ["text", "json"])

    def test_value_after_an_equals_sign(self) -> None:
        self.assertEqual(self.offered("offprof view --format=j"), ["json"])
        self.assertEqual(self.offered("offprof view --format="), ["text", "json"])

    def test_value_after_a_colon(self) -> None:
        self.assertEqual(self.offered("offprof run --device virtual:h2"), ["h200"])

    def test_files(self) -> None:
        self.assertEqual(self.offered("offprof view tr"), ["trace.json"])
        self.assertEqual(self.offered("offprof view --trace=tr"), ["trace.json"])

    def test_folders_only(self) -> None:
        self.assertEqual(self.offered("offprof run --disk "), ["results"])

    def test_bash_itself_calls_the_script(self) -> None:
        script = f'eval "$({shlex.quote(str(PROGRAM))} completion bash)"; complete -p offprof'
        self.assertEqual(self.run_shell("bash", "--norc", "-c", script), "complete -F _offprof offprof\n")


@unittest.skipUnless(shutil.which("zsh"), "no zsh")
class ZshTest(ShellTest):
    def test_script_is_valid(self) -> None:
        self.run_shell("zsh", "-n", "-c", self.run_shell(str(PROGRAM), "completion", "zsh"))

    def test_script_defines_the_completion(self) -> None:
        script = 'autoload -Uz compinit; compinit -u -D; eval "$(offprof completion zsh)"; print $_comps[offprof]'
        self.assertEqual(self.run_shell("zsh", "-f", "-c", script), "_offprof\n")


@unittest.skipUnless(shutil.which("fish"), "no fish")
class FishTest(ShellTest):
    def offered(self, line: str) -> list[str]:
        script = f"offprof completion fish | source; complete -C {shlex.quote(line)}"
        return [text.split("\t")[0] for text in self.run_shell("fish", "--no-config", "-c", script).splitlines()]

    def test_commands(self) -> None:
        self.assertEqual(self.offered("offprof sim"), ["simulate"])

    def test_options(self) -> None:
        self.assertEqual(self.offered("offprof gate --upd"), ["--update"])

    def test_enumerated_values(self) -> None:
        self.assertEqual(sorted(self.offered("offprof view --format ")), ["json", "text"])
        self.assertEqual(self.offered("offprof view --format=j"), ["--format=json"])

    def test_value_after_a_colon(self) -> None:
        self.assertEqual(self.offered("offprof run --device virtual:h2"), ["virtual:h200"])

    def test_files(self) -> None:
        self.assertEqual(self.offered("offprof view tr"), ["trace.json"])
        self.assertEqual(self.offered("offprof view --trace=tr"), ["--trace=trace.json"])

    def test_folders_only(self) -> None:
        self.assertEqual(self.offered("offprof run --disk "), ["results/"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
