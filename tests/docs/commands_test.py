"""Tests commands.py, and that run_commands.py fails where a page and the program do not agree."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import commands
import quotes

HERE = Path(__file__).parent

PAGE = """# Title

```
$ offprof zoo make mlp -o m.pt     # a model
$ offprof run m.pt \\
    --steps 2
  a table
offprof: not a command
```

It does not fit, and ends with exit status 3:

    $ offprof run m.pt --device-memory 1MiB
    error: out of device memory

```
offprof gate t.json --limit 'a # b'    # exit status 1
scripts/demo.sh
```

In prose, `offprof tune t.json --no-plan` and `offprof`.
"""


def found():
    return [(command.line, command.text, command.status) for command in commands.commands("p.md", PAGE)]


class Commands(unittest.TestCase):
    def test_finds_commands_of_blocks_with_their_lines_and_status(self):
        self.assertEqual(
            found(),
            [
                (4, "offprof zoo make mlp -o m.pt", 0),
                (5, "offprof run m.pt --steps 2", 0),
                (13, "offprof run m.pt --device-memory 1MiB", 3),
                (17, "offprof gate t.json --limit 'a # b'", 1),
            ],
        )

    def test_finds_the_output_that_a_page_quotes(self):
        text = "```\n$ offprof ok\n  a table\n...\n$ ls\nfile\n```\n"
        (command,) = commands.commands("p.md", text)
        self.assertEqual(command.quoted, ((3, "a table"), (4, "...")))

    def test_finds_mentions_in_prose(self):
        self.assertEqual(commands.mentions(PAGE), ["offprof tune t.json --no-plan"])


class Quotes(unittest.TestCase):
    OUTPUT = "  per step        measured\n  step_time_ns      12.5 ms\n\nmemory     prediction exact to the\nbyte\n"

    def stale(self, *lines):
        return [text for _, text in quotes.stale_lines(enumerate(lines), self.OUTPUT)]

    def test_accepts_other_figures_and_other_line_breaks(self):
        self.assertEqual(
            self.stale("step_time_ns  7 us (3 %)", "...", "memory  prediction exact to the byte", "────"), []
        )

    def test_reports_words_that_are_not_printed(self):
        self.assertEqual(
            self.stale("a step   measured", "memory  predicted"), ["a step   measured", "memory  predicted"]
        )

    def test_reports_words_in_another_order(self):
        self.assertEqual(self.stale("measured step_time_ns per step"), ["measured step_time_ns per step"])

    def test_leaves_out_what_the_machine_chose(self):
        self.assertEqual(self.stale("Chosen, the least memory at no more than 5% slowdown: a plan"), [])


class RunCommands(unittest.TestCase):
    """Over a program that knows `ok`, which ends with status 0, and whose help has --known."""

    def run_on(self, page, subpage=None, cannot_run=None, options=()):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "tests" / "docs").mkdir(parents=True)
            if cannot_run is not None:
                (root / "tests" / "docs" / "cannot_run.json").write_text(json.dumps(cannot_run))
            (root / "build").mkdir()
            (root / "README.md").write_text(page)
            if subpage is not None:
                (root / "docs" / "how-to").mkdir()
                (root / "docs" / "how-to" / "page.md").write_text(subpage)
            program = root / "build" / "offprof"
            program.write_text('#!/bin/sh\necho "--known"\n[ "$1" = ok ]\n')
            program.chmod(0o755)
            return subprocess.run(
                [sys.executable, HERE / "run_commands.py", "--program", program, "--root", root, *options],
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )

    def test_passes_where_commands_end_as_the_page_says(self):
        done = self.run_on("```\noffprof ok\noffprof bad # exit status 1\n```\n`offprof ok --known`\n")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_leaves_out_commands_that_are_listed(self):
        done = self.run_on("```\noffprof ok\noffprof new\n```\n", cannot_run={"offprof new": "is new"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 commands on all pages, 1 of them not run", done.stdout)

    def test_fails_where_a_listed_command_is_on_no_page(self):
        done = self.run_on("```\noffprof ok\n```\n", cannot_run={"offprof old": "was removed"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("lists a command that is on no page: offprof old", done.stdout)

    def test_fails_where_a_command_does_not_work(self):
        done = self.run_on("```\noffprof ok\noffprof new\n```\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md:3: offprof new", done.stdout)

    def test_fails_where_a_page_quotes_what_is_not_printed(self):
        done = self.run_on("```\n$ offprof ok\n--known\n$ offprof ok\n--other\n```\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md:5: offprof ok does not print: --other", done.stdout)
        self.assertNotIn("--known", done.stdout)

    def test_fails_where_the_status_is_not_the_one_that_the_page_says(self):
        self.assertEqual(self.run_on("```\noffprof ok # exit status 1\n```\n").returncode, 1)

    def test_fails_where_prose_has_an_option_that_is_not_there(self):
        done = self.run_on("```\noffprof ok\n```\n`offprof ok --unknown`\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no --unknown", done.stdout)

    def test_leaves_the_options_of_a_script_alone(self):
        done = self.run_on("```\noffprof ok\n```\n`offprof ok --known -- --option-of-the-script=1`\n")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_runs_the_pages_of_subfolders(self):
        done = self.run_on("```\noffprof ok\n```\n", subpage="```\noffprof new\n```\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("docs/how-to/page.md:2: offprof new", done.stdout)

    def test_each_page_is_in_one_part(self):
        run = [
            self.run_on("```\noffprof ok\n```\n", subpage="```\noffprof ok\n```\n", options=("--shard", f"{part}/2"))
            for part in (1, 2)
        ]
        for page in ("README.md:2", "docs/how-to/page.md:2"):
            self.assertEqual([page in done.stdout for done in run].count(True), 1)

    def test_does_not_run_a_command_that_needs_a_gpu(self):
        done = self.run_on("```\noffprof ok\noffprof new # needs a GPU\n```\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("2 commands on all pages, 1 of them not run", done.stdout)

    def test_fails_where_there_is_nothing_to_run(self):
        self.assertEqual(self.run_on("nothing\n").returncode, 1)


if __name__ == "__main__":
    unittest.main()
