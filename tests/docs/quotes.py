"""Compares the output that a page quotes below a command with the output that the command prints.

Figures differ from machine to machine, so only words are compared: a quoted line is stale if its words do not stand in the
output one after another. Numbers, units, rules of tables and charts are not words. `...` stands for lines that the page leaves
out. Lines that name what this machine chose or measured (VARIES) are not compared.
"""

import re

UNITS = frozenset(["B", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s", "min", "%", "GB/s", "MB/s", "B/s", "x"])
# Marks of the tables of `tune`: which row is chosen, and whether it is a plan, depends on the times that the machine measured.
MARKS = frozenset([">", "plan", "ids", "-", "equal"])
DIGIT = re.compile(r"\d")
LETTER = re.compile(r"[A-Za-z]")
VARIES = re.compile(
    r"policy tuned:|^Chosen|^Compute idle|^Lower bounds?|^Limited by|^Cost of its copies|^More resources"
    r"|simulated, .* settings of|^ *(link|run property) |^ +[^ ].*#\d|^ok +\w|^optional +\w|copies at a time"
)


def words(text):
    """Returns the words of a text without numbers, units and marks."""
    found = (word.strip("(),.;:") for word in text.split())
    return [word for word in found if LETTER.search(word) and not DIGIT.search(word) and word not in UNITS | MARKS]


def contains(sequence, part):
    """Returns whether `part` stands in `sequence` without a gap."""
    return any(sequence[at : at + len(part)] == part for at in range(len(sequence) - len(part) + 1))


def stale_lines(quoted, output):
    """Returns those of the quoted lines, (number, text) each, whose words are not in the output."""
    printed = words(output)
    return [
        (number, text)
        for number, text in quoted
        if not VARIES.search(text.strip()) and not contains(printed, words(text))
    ]
