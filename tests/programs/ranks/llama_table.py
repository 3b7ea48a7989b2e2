"""Finds the memory of ranks of large jobs, each alone: rows of llama_rank.py under `offprof exec --world-size`.

    llama_table.py --offprof BUILD/offprof [--rows NAME,...]

Compares the peaks of the second step, to the byte, with those of the same program over PyTorch's fake process group,
which needs nothing of offprof but the virtual GPU. Exit status 1 if a row differs, takes more than 1 GB of host memory,
or fails.

What PyTorch's allocator reserves depends on the order of addresses: it takes the lowest of equal blocks. On a virtual
GPU later memory lies below earlier memory, as on an H100 and an H200. Where it lay above, reserved memory was up to 1 %
lower and allocated memory up to 2 MiB: rank 0 of 8 had 23.474 and 28.926 GiB.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LLAMA = Path(__file__).resolve().with_name("llama_rank.py")
GIB = 2**30
MOST_HOST_MEMORY = 10**9
FAILED_LINES = 20


@dataclass(frozen=True)
class Row:
    """A rank of a job. `compared` are its figures that have to be those of the fake process group."""

    name: str
    world: int
    rank: int
    arguments: tuple[str, ...] = ()
    compared: tuple[str, ...] = ("allocated", "reserved")


@dataclass(frozen=True)
class Peaks:
    """Peaks of PyTorch's allocator by name, in bytes; and the process's time and highest host memory, in bytes."""

    figures: dict[str, int]
    seconds: float
    host: int


CHECKPOINTED = ("--sequence", "4096", "--checkpointing")
ROWS = (
    Row("8", 8, 0),
    Row("64", 64, 0),
    Row("1024", 1024, 0),
    Row("last-of-1024", 1024, 1023),
    Row("first-of-7", 7, 0),
    Row("last-of-7", 7, 6),
    Row("reshard", 64, 9, ("--reshard-to", "8")),
    Row("tensor-parallel", 64, 9, ("--tensor-parallel", "8")),
    # FSDP1 frees memory that another stream uses, so what it reserves depends on the times of collectives.
    Row("fsdp1", 8, 3, ("--sharding", "fsdp1"), ("allocated",)),
    Row("save-on-cpu", 8, 3, ("--save-on-cpu",)),
    Row("70b", 64, 0, ("--size", "70b", *CHECKPOINTED)),
    Row("405b", 1024, 0, ("--size", "405b", *CHECKPOINTED)),
)


def measure(offprof: Path, options: list[object], arguments: list[object]) -> Peaks | None:
    """Runs llama_rank.py under `offprof exec` with the options. Returns None, and prints why, if it fails."""
    line = [offprof, "exec", *options, "--", sys.executable, LLAMA, *arguments]
    with tempfile.TemporaryFile("w+") as output:
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in line], stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        output.seek(0)
        text = output.read()
    found = re.search(r"^\{.*\}$", text, re.MULTILINE)
    if status != 0 or found is None:
        print(f"failed with status {os.waitstatus_to_exitcode(status)}:", *text.splitlines()[-FAILED_LINES:], sep="\n")
        return None
    return Peaks(json.loads(found[0]), seconds, usage.ru_maxrss * 1024)


def run(offprof: Path, row: Row) -> bool:
    """Runs a row and prints its figures. Returns True if they are those of the fake process group."""
    ranks = ["--world-size", row.world, "--rank", row.rank, "--nodes", max(1, row.world // 8)]
    alone = measure(offprof, ranks, [*row.arguments])
    fake = measure(offprof, ["--device", "virtual"], [*row.arguments, "--fake", row.rank, row.world])
    if alone is None or fake is None:
        print(f"{row.name}: failed", flush=True)
        return False
    off = {name: alone.figures[name] - fake.figures[name] for name in row.compared}
    differs = [f"{name} by {bytes_off} bytes" for name, bytes_off in off.items() if bytes_off != 0]
    print(
        f"{row.name:16} rank {row.rank:4} of {row.world:4}  allocated {alone.figures['allocated'] / GIB:7.3f}  "
        f"reserved {alone.figures['reserved'] / GIB:7.3f} GiB  {alone.seconds:5.1f} s  host {alone.host / 1e9:4.2f} GB  "
        + (f"DIFFERS: {', '.join(differs)}" if differs else "as with the fake process group"),
        flush=True,
    )
    return not differs and alone.host <= MOST_HOST_MEMORY


def main() -> int:
    """Runs the rows of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--offprof", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(row.name for row in ROWS))
    options = parser.parse_args()
    names = options.rows.split(",")
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"there are no rows {', '.join(sorted(unknown))}")
    results = [run(options.offprof.resolve(), row) for row in ROWS if row.name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
