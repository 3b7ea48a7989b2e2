"""Prints tables from gcovr's JSON summary: coverage by module, and the ten least covered files.

table.py SUMMARY.json
"""

import json
import pathlib
import sys

LEAST = 10
FEWEST_LINES = 10  # the coverage of a smaller file means little


class Count:
    def __init__(self):
        self.lines = self.lines_covered = self.branches = self.branches_covered = 0

    def add(self, file):
        self.lines += file["line_total"]
        self.lines_covered += file["line_covered"]
        self.branches += file["branch_total"]
        self.branches_covered += file["branch_covered"]

    def row(self, name):
        return (f"| {name} | {self.lines} | {percent(self.lines_covered, self.lines)} | {self.branches} | "
                f"{percent(self.branches_covered, self.branches)} |")  # fmt: skip


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def module_of(name):
    """Returns the module: `traces`, `cli`, or a folder in `engine`, `simulator` or `profiler`."""
    folders = pathlib.PurePath(name).parts[:-1]
    return "/".join(folders[:2])


def main():
    files = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    modules: dict[str, Count] = {}
    total = Count()
    for file in files:
        modules.setdefault(module_of(file["filename"]), Count()).add(file)
        total.add(file)
    print("| module | lines | executed | branches | taken |\n| --- | --- | --- | --- | --- |")
    for name, count in sorted(modules.items()):
        print(count.row(name))
    print(total.row("**all**"))

    def share(file):
        return file["line_covered"] / file["line_total"]

    print(
        f"\n| least covered file of {FEWEST_LINES} lines or more | lines | executed | branches | taken |\n| --- | --- | --- | --- | --- |"
    )
    for file in sorted((file for file in files if file["line_total"] >= FEWEST_LINES), key=share)[:LEAST]:
        count = Count()
        count.add(file)
        print(count.row(f"`{file['filename']}`"))


main()
