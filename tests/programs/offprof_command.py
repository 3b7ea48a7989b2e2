"""Runs offprof on the programs of this folder."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs

# More steps than a recording takes: offprof stops a program once it is recorded.
STEPS = 400


class CommandFailed(Exception):
    """A command of offprof ended with an exit status other than 0. The message is its first error."""


def offline_environment(folder: Path) -> dict[str, str]:
    """Returns an environment without network, with one thread, and with all caches in `folder`."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder),
        "TOKENIZERS_PARALLELISM": "false",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "OMP_NUM_THREADS": "1",
    }


@dataclass(frozen=True)
class Offprof:
    """The program offprof with a folder for files.

    `seconds` limits each command.
    """

    executable: Path
    folder: Path
    seconds: float = 600

    def run(self, program: programs.Program, device: str, *flags: str) -> dict[str, Any]:
        """Runs `offprof run` on a program, and returns the report. Raises CommandFailed."""
        return self._report_on("run", program, device, *flags)

    def advise(self, program: programs.Program, device: str, *flags: str) -> dict[str, Any]:
        """Runs `offprof advise` on a program, and returns the report. Raises CommandFailed."""
        return self._report_on("advise", program, device, *flags)

    def _report_on(self, command: str, program: programs.Program, device: str, *flags: str) -> dict[str, Any]:
        torch_device = "cpu" if device == "host" else "cuda"
        return self._report(
            command,
            "--format",
            "json",
            "--python",
            sys.executable,
            "--device",
            device,
            *flags,
            str(program.path),
            "--",
            "--device",
            torch_device,
            "--steps",
            str(STEPS),
            *program.arguments,
        )

    def simulate(self, trace: Path, *flags: str) -> dict[str, Any]:
        """Runs `offprof simulate`, and returns the report. Raises CommandFailed."""
        return self._report("simulate", "--format", "json", str(trace), *flags)

    def tune(self, trace: Path, *flags: str) -> dict[str, Any]:
        """Runs `offprof tune`, and returns the report. Raises CommandFailed."""
        return self._report("tune", "--format", "json", str(trace), *flags)

    def export(self, policy: str, trace: Path, engine: str, *flags: str) -> dict[str, Any]:
        """Runs `offprof export`, and returns the report. Raises CommandFailed."""
        return self._report("export", "--format", "json", policy, "--trace", str(trace), "--to", engine, *flags)

    def _report(self, *arguments: str) -> dict[str, Any]:
        ended = subprocess.run(
            [str(self.executable), *arguments],
            cwd=self.folder,
            env=offline_environment(self.folder),
            capture_output=True,
            text=True,
            check=False,
            timeout=self.seconds,
        )
        if ended.returncode != 0:
            errors = [line for line in ended.stderr.splitlines() if line.startswith("error")]
            raise CommandFailed(errors[0] if errors else f"status {ended.returncode}: {ended.stderr[-300:]}")
        # The output of the program comes first.
        report: dict[str, Any] = json.loads(ended.stdout[ended.stdout.index('{\n  "schema"') :])
        return report
