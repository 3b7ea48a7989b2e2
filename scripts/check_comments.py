#!/usr/bin/env python3
"""Reports comments that begin with a word that hides their subject: What, Of, Likewise, Those, As.

A comment begins with a verb in the third person ("Returns the peak in bytes") or with a noun ("Upper bound on the copy time of a
step"). Checked are the first line of each comment in C++ sources, and comments behind code.

  scripts/check_comments.py

Exit status 1 if there is anything to report.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r'^(?P<code>(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*)//[/!]?<?\s*(?P<text>.*)$')
# "of" and "as" may begin the few words behind a member: `Bytes bytes;  ///< as requested`.
OPENING = re.compile(r"(?:[Ww]hat|[Ll]ikewise|[Tt]hose|Of|As)\b")


def openings(text):
    """The line numbers and texts of comments in `text` that begin with a forbidden word."""
    in_comment = False
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.match(line)
        is_whole_line = match is not None and not match["code"].strip()
        if match and not (in_comment and is_whole_line) and OPENING.match(match["text"]):
            yield number, match["text"]
        in_comment = is_whole_line


def main():
    """Prints each opening that is not allowed. Returns the exit status."""
    listing = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
            "*.h",
            "*.cpp",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = [
        f"{path}:{number}: {text}"
        for path in listing.stdout.splitlines()
        if (ROOT / path).is_file()
        for number, text in openings((ROOT / path).read_text())
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
