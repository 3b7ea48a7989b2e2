"""Finds the memory of ranks of large jobs, each alone: rows of llama_rank.py under `offprof exec --world-size`.

    llama_table.py --offprof BUILD/offprof [--rows NAME,...]

Compares the peaks of the second step with those that were found before with the same versions of torch (2.11) and
transformers (4.57), where there are some: an independent script over PyTorch's fake process group gave the same. Exit
status 1 if a row differs, takes more than 1 GB of host memory, or fails.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LLAMA = Path(__file__).resolve().with_name("llama_rank.py")
GIB = 2**30
MOST_HOST_MEMORY = 10**9


@dataclass(frozen=True)
class Row:
    """A rank of a job, and its expected peaks in GiB to three places; None: not known."""

    name: str
    world: int
    rank: int
    arguments: tuple[str, ...] = ()
    allocated: float | None = None
    reserved: float | None = None


CHECKPOINTED = ("--sequence", "4096", "--checkpointing")
ROWS = (
    Row("8", 8, 0, (), 23.474, 28.926),
    Row("64", 64, 0, (), 15.104, 18.469),
    Row("1024", 1024, 0, (), 14.018, 16.451),
    Row("last-of-1024", 1024, 1023, (), 13.994, 16.416),
    Row("first-of-7", 7, 0),
    Row("last-of-7", 7, 6),
    Row("reshard", 64, 9, ("--reshard-to", "8"), 16.503, 19.037),
    Row("tensor-parallel", 64, 9, ("--tensor-parallel", "8"), 8.100, 10.760),
    # FSDP1 frees memory that another stream uses, so what it reserves depends on modelled times.
    Row("fsdp1", 8, 3, ("--sharding", "fsdp1"), 23.115),
    Row("save-on-cpu", 8, 3, ("--save-on-cpu",), 15.887, 21.148),
    Row("70b", 64, 0, ("--size", "70b", *CHECKPOINTED), 32.292, 44.334),
    Row("405b", 1024, 0, ("--size", "405b", *CHECKPOINTED), 63.279, 93.469),
)


def run(offprof: Path, row: Row, folder: Path) -> bool:
    """Runs a row and prints its figures. Returns True if they are the expected ones."""
    report = folder / "report.json"
    line = [offprof, "exec", "--format", "json", "-o", report]
    line += ["--world-size", row.world, "--rank", row.rank, "--nodes", max(1, row.world // 8)]
    line += ["--", sys.executable, LLAMA, *row.arguments]
    began = time.monotonic()
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    found = re.search(r"^\{.*\}$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or found is None:
        print(f"{row.name}: failed with status {done.returncode}\n{done.stderr[-2000:]}")
        return False
    peaks = {name: value / GIB for name, value in json.loads(found[0]).items()}
    process = json.loads(report.read_text())["processes"][0]
    host = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    wanted = {"allocated": row.allocated, "reserved": row.reserved}
    differs = [name for name, value in wanted.items() if value is not None and f"{peaks[name]:.3f}" != f"{value:.3f}"]
    print(
        f"{row.name:16} rank {row.rank:4} of {row.world:4}  allocated {peaks['allocated']:7.3f}  reserved "
        f"{peaks['reserved']:7.3f} GiB  communicators {process['communicators']}  {seconds:5.1f} s  host "
        f"{host / 1e9:4.2f} GB  " + (f"DIFFERS: {', '.join(differs)}" if differs else "as expected"),
        flush=True,
    )
    return not differs and host <= MOST_HOST_MEMORY


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
    with tempfile.TemporaryDirectory() as folder:
        results = [run(options.offprof.resolve(), row, Path(folder)) for row in ROWS if row.name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
