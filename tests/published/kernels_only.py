"""Writes a built-in profile without the times of a Python program's host, to compare kernels alone.

    python3 tests/published/kernels_only.py PROFILE OUTPUT.json

What the host takes depends on the machine, and tables of published times do not name theirs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

PROFILES = Path(__file__).resolve().parents[2] / "engine/devices/virtual_gpu/model/profiles"


def kernels_only(profile: dict) -> dict:
    """Returns the profile with host times of 0."""
    return profile | {"host": dict.fromkeys(profile["host"], 0)}


if __name__ == "__main__":
    built_in = json.loads((PROFILES / f"{sys.argv[1]}.json").read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(kernels_only(built_in), indent=2), encoding="utf-8")
