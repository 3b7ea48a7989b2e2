"""Tests tests/support/summary.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).parent / "summary.py"
PASSED = '<testcase name="{}" classname="{}" status="run" result="completed" time="{}"/>'
SKIPPED = '<testcase name="{}" classname="{}" status="run" result="skipped" time="0"><skipped message="a.cpp:1&#x0A;{}"/></testcase>'
FAILED = (
    '<testcase name="{}" classname="{}" status="run" result="completed" time="0"><failure message="{}"/></testcase>'
)


def entry(name, status="run", inside=""):
    return f'<testcase name="{name}" time="2.5" status="{status}">{inside}</testcase>'


class SummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "test_reports").mkdir()

    def write(self, name, *cases):
        text = f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"
        (self.build / "test_reports" / f"{name}.xml").write_text(text, encoding="utf-8")

    def run_summary(self, *skipped):
        """Runs summary.py. Returns its exit status and the lines of its output."""
        command: list[str | pathlib.Path] = [sys.executable, SUMMARY, "--build", self.build]
        if skipped:
            file = self.build / "skipped.txt"
            file.write_text("\n".join(skipped), encoding="utf-8")
            command += ["--check-skipped", file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_counts_the_cases_of_all_shards(self):
        self.write("ctest", entry("a_test.1_of_2"), entry("a_test.2_of_2"), entry("fuzz.json"))
        self.write("a_test.1_of_2", PASSED.format("Adds", "Sum", 7.25), PASSED.format("Wraps", "Sum", 0))
        self.write("a_test.2_of_2", PASSED.format("Divides", "Sum", 0))
        status, lines = self.run_summary()
        self.assertEqual((status, lines[-1]), (0, "4 passed, 0 failed, 0 skipped"))
        self.assertIn("     7.2 s  a_test Sum.Adds", lines)

    def test_a_failing_case_fails(self):
        self.write("ctest", entry("a_test", "fail"))
        self.write("a_test", PASSED.format("Adds", "Sum", 0), FAILED.format("Wraps", "Sum", "a.cpp:7&#x0A;1 is not 2"))
        status, lines = self.run_summary()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(lines[-4:-1], ["failed: a_test Sum.Wraps", "    a.cpp:7", "    1 is not 2"])

    def test_a_program_that_dies_fails_without_a_report(self):
        output = "begins" + "\nruns" * 100 + "\naborted"
        self.write("ctest", entry("a_test", "fail", f"<system-out>{output}</system-out>"), entry("b_test"))
        lines = self.run_summary()[1]
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")
        self.assertIn("    aborted", lines)
        self.assertNotIn("    begins", lines)

    def test_a_program_that_dies_after_its_report_fails(self):
        self.write("ctest", entry("a_test", "fail"))
        self.write("a_test", PASSED.format("Adds", "Sum", 0))
        self.assertEqual(self.run_summary()[1][-1], "1 passed, 1 failed, 0 skipped")

    def test_skipped_cases_are_compared_with_the_list(self):
        self.write("ctest", entry("a_test"), entry("c_test.cuda", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>'))
        self.write("a_test", PASSED.format("Adds", "Sum", 0), SKIPPED.format("Rings", "Disk", "no io_uring"))
        self.assertEqual(self.run_summary()[0], 0)
        self.assertEqual(self.run_summary("a_test Disk.Rings  # why", "c_test.cuda")[0], 0)
        self.assertEqual(self.run_summary("a_test Disk.Rings")[0], 1)
        self.assertEqual(self.run_summary("a_test Disk.Rings", "c_test.cuda", "b_test")[0], 1)

    def test_a_run_without_tests_fails(self):
        self.write("ctest")
        self.assertEqual(self.run_summary()[0], 1)

    def test_a_missing_report_is_an_error(self):
        self.assertEqual(self.run_summary()[0], 2)


unittest.main()
