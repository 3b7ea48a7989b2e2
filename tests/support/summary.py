"""Summarizes a run of CTest by cases: failed cases, skipped cases, and the ten slowest cases.

    summary.py --build FOLDER [--check-skipped FILE]

    --build          the build folder; its test_reports/ contains ctest.xml (ctest --output-junit) and the reports of the
                     test programs
    --check-skipped  a list of the cases that must be skipped, one per line (`PROGRAM SUITE.CASE`, or an entry of CTest);
                     `#` begins a comment

A test program is one entry of CTest, or several (PROGRAM.1_of_4); its cases are in test_reports/ENTRY.xml. An entry
without such a file counts as one case. The last line is `N passed, N failed, N skipped`.

Of a failed case, the last lines of its message are printed; of an entry without a report, those of its output.

Exit status: 0 success; 1 a case failed, no case ran, or the skipped cases are not those in FILE; 2 there is no ctest.xml.
"""

import argparse
import collections
import pathlib
import re
import sys
import textwrap
from xml.etree import ElementTree

SLOWEST = 10
LINES_OF_FAILURE = 25

Case = collections.namedtuple("Case", "name seconds verdict reason")


def last_lines(text):
    """Returns the last lines of a failing case's output."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-LINES_OF_FAILURE:])


def of_entry(entry):
    """Returns an entry of CTest as one case."""
    skipped = entry.find("skipped")
    status = entry.get("status")
    if skipped is not None:
        verdict, reason = "skipped", skipped.get("message", "")
    elif status == "run":
        verdict, reason = "passed", ""
    else:
        verdict, reason = "failed", last_lines(entry.findtext("system-out") or "") or status
    return Case(entry.get("name"), float(entry.get("time") or 0), verdict, reason)


def cases_of(report, program):
    """Yields the cases in the report of a test program."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        skipped = case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            verdict, reason = "failed", last_lines(failure.get("message", ""))
        elif skipped is not None:
            verdict, reason = "skipped", skipped.get("message", "").split("\n")[-1]
        else:
            verdict, reason = "passed", ""
        yield Case(f"{program} {case.get('classname')}.{case.get('name')}", float(case.get("time", 0)), verdict, reason)


def collect(reports):
    """Returns all cases of the run. A program that failed without a failing case (a crash or a hang) adds one case."""
    cases = []
    for entry in ElementTree.parse(reports / "ctest.xml").getroot().iter("testcase"):
        whole = of_entry(entry)
        report = reports / f"{whole.name.replace('/', '_')}.xml"
        if whole.verdict == "skipped" or not report.exists():
            cases.append(whole)
            continue
        inside = list(cases_of(report, re.sub(r"\.\d+_of_\d+$", "", whole.name)))
        cases += inside
        if whole.verdict == "failed" and not any(case.verdict == "failed" for case in inside):
            cases.append(whole)
    return cases


def listed(file):
    lines = (line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line}


def skips_as_listed(skipped, file):
    """Returns true if the skipped cases are those in the list. Prints the differences."""
    expected, actual = listed(file), {case.name for case in skipped}
    for name in sorted(actual - expected):
        print(f"skipped, but not listed in {file}: {name}")
    for name in sorted(expected - actual):
        print(f"listed in {file}, but not skipped: {name}")
    return expected == actual


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--check-skipped", type=pathlib.Path)
    options = parser.parse_args()
    reports = options.build / "test_reports"
    if not (reports / "ctest.xml").exists():
        print(f"summary.py: no such file: {reports / 'ctest.xml'}", file=sys.stderr)
        return 2
    cases = collect(reports)
    by = {verdict: [case for case in cases if case.verdict == verdict] for verdict in ("passed", "failed", "skipped")}
    print("slowest:")
    for case in sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]:
        print(f"{case.seconds:8.1f} s  {case.name}")
    for case in by["skipped"]:
        print(f"skipped: {case.name}: {case.reason}")
    for case in by["failed"]:
        print(f"failed: {case.name}", textwrap.indent(case.reason, "    "), sep="\n")
    good = not options.check_skipped or skips_as_listed(by["skipped"], options.check_skipped)
    print(f"{len(by['passed'])} passed, {len(by['failed'])} failed, {len(by['skipped'])} skipped")
    return 0 if good and by["passed"] and not by["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
