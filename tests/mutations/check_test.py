"""Tests tests/mutations/check.py, and that planted.json fits the sources: a change that moves a mutated line fails here,
long before the next mutation testing."""

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check
import draw

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bug(name="no sum", file="sum.cpp", is_="a + b", becomes="a", programs=("sum_test",)):
    return {"name": name, "file": file, "is": is_, "becomes": becomes, "programs": list(programs)}


class FitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        (self.root / "CMakeLists.txt").write_text("offprof_test(sum_test sum_test.cpp)\n", encoding="utf-8")
        (self.root / "sum_test.cpp").write_text("TEST(Sum, AddsTwoNumbers) {\n", encoding="utf-8")
        (self.root / "sum.cpp").write_text("return a + b;\nreturn c;\nreturn c;\n", encoding="utf-8")

    def misfits(self, *bugs):
        return check.misfits(list(bugs), self.root)

    def test_accepts_a_text_that_occurs_once(self):
        self.assertEqual(self.misfits(bug(programs=["tests/sum_test", "sum_test:Sum.Adds*"])), [])

    def test_reports_a_text_that_does_not_occur_once(self):
        self.assertIn("occurs 0 times in sum.cpp", self.misfits(bug(is_="a - b"))[0])
        self.assertIn("occurs 2 times in sum.cpp", self.misfits(bug(is_="return c;"))[0])

    def test_reports_a_missing_file(self):
        self.assertIn("difference.cpp", self.misfits(bug(file="difference.cpp"))[0])

    def test_reports_a_mutation_that_changes_nothing(self):
        self.assertIn("changes nothing", self.misfits(bug(becomes="a + b"))[0])

    def test_reports_an_unknown_program(self):
        self.assertIn(
            "declares the test program tests/product_test", self.misfits(bug(programs=["tests/product_test"]))[0]
        )

    def test_reports_a_filter_without_cases(self):
        self.assertIn("no test case fits the filter Product.*", self.misfits(bug(programs=["sum_test:Product.*"]))[0])

    def test_reports_a_name_that_occurs_twice(self):
        self.assertEqual(self.misfits(bug(), bug(is_="a +")), ["no sum: the name occurs twice"])

    def test_the_planted_mutations_fit_the_sources(self):
        table = json.loads((ROOT / "tests/mutations/planted.json").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(table), 150)
        self.assertEqual(check.misfits(table, ROOT), [])


class DrawTest(unittest.TestCase):
    def test_each_module_has_sources_and_test_programs(self):
        tests = check.Tests(ROOT)
        for module, (patterns, _, programs) in draw.MODULES.items():
            for pattern in patterns:
                self.assertTrue(list(draw.files_of(ROOT, [pattern])), f"{module}: {pattern}")
            self.assertEqual([tests.problem(program) for program in programs], [""] * len(programs))


class FakeSources:
    """A build whose tests catch the mutations of these names."""

    def __init__(self, folder, catches):
        self.folder, self.catches, self.runs, self.built = folder, catches, [], []

    def make(self, programs):
        self.built += programs

    def try_clean(self, programs):
        pass

    def first_failure(self, programs):
        text = (self.folder / "sum.cpp").read_text(encoding="utf-8")
        self.runs.append(text)
        return "`Sum.Adds`" if text in self.catches else None


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "sum.cpp").write_text("a + b", encoding="utf-8")
        self.bugs = [bug("one", becomes="a"), bug("two", becomes="b"), bug("three", becomes="0")]

    def run_bugs(self, bugs, hash_="sources"):
        """Runs the mutations as a new process would. Returns the texts that were tested, and the results."""
        sources = FakeSources(self.folder, catches=["a"])
        results = check.Results(self.folder / "results.jsonl", hash_, fresh=False)
        with contextlib.redirect_stderr(io.StringIO()):
            check.run_mutations(bugs, sources, results)
        return sources.runs, results

    def test_parts_cover_all_mutations_once_and_follow_the_files(self):
        bugs = [bug(f"bug {i}", file=f"{i % 3}.cpp") for i in range(10)]
        parts = [check.part_of(bugs, (i, 4)) for i in range(1, 5)]
        together = [b for part in parts for b in part]
        self.assertCountEqual([b["name"] for b in together], [b["name"] for b in bugs])
        self.assertEqual([b["file"] for b in together], sorted(b["file"] for b in bugs))
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)

    def test_rejects_a_part_that_does_not_exist(self):
        self.assertEqual(check.parse_part("2/8"), (2, 8))
        for text in ("0/8", "9/8", "2", "a/b"):
            self.assertRaises(argparse.ArgumentTypeError, check.parse_part, text)

    def test_a_later_run_continues_after_the_results_of_the_earlier_one(self):
        self.assertEqual(self.run_bugs(self.bugs[:2])[0], ["a", "b"])
        self.assertEqual(self.run_bugs(self.bugs)[0], ["0"])
        self.assertEqual(self.run_bugs(self.bugs)[0], [])

    def test_changed_sources_are_tested_again(self):
        self.run_bugs(self.bugs)
        self.assertEqual(len(self.run_bugs(self.bugs, "other sources")[0]), 3)

    def test_restores_the_sources(self):
        self.run_bugs(self.bugs)
        self.assertEqual((self.folder / "sum.cpp").read_text(encoding="utf-8"), "a + b")

    def test_the_table_says_what_was_caught_what_survived_and_what_was_not_run(self):
        results = self.run_bugs(self.bugs[:2])[1]
        out = io.StringIO()
        check.write_table(self.bugs, results, out)
        rows = out.getvalue().splitlines()[2:]
        self.assertEqual(rows, ["| one | `sum.cpp` | caught | `Sum.Adds` |", "| two | `sum.cpp` | **survived** |  |",
                                "| three | `sum.cpp` | not run |  |"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
