"""Checks an installed wheel, from the command to the policy in a training loop.

    ENVIRONMENT/bin/python tests/install/wheel_check.py

Needs nothing but this folder's neighbours and the environment: offprof and torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = TESTS / "programs" / "mlp.py"
OFFPROF = Path(sys.executable).parent / "offprof"
GPU = "virtual:h100-80gb"
STEPS = 5

# The program of a user: the context around forward and loss. Prints the figures and the gradients of the last step.
TRAINING = f"""
import json, sys
import torch
import offprof

policy = sys.argv[1]
device = "cuda" if torch.cuda.is_available() else "cpu"
offloading = offprof.OffloadActivations(policy)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range({STEPS}):
    optimizer.zero_grad()
    batch = torch.randn(128, 64).to(device)
    with offloading:
        loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
report = offloading.report()
print(json.dumps({{
    "moved": report.measured["d2h_bytes"],
    "peak": report.measured["device_peak_bytes"],
    "gradients": [parameter.grad.double().sum().item().hex() for parameter in model.parameters()],
}}))
"""


class WheelTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def output_of(self, *command: object) -> str:
        """Runs a command in an empty folder, without the variables of the source folder."""
        words = [str(word) for word in command]
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.folder, env=environment)
        self.assertEqual(ended.returncode, 0, f"{words}:\n{ended.stdout}\n{ended.stderr}")
        return ended.stdout

    def report_of(self, *arguments: object) -> dict[str, Any]:
        """Runs offprof, and returns its report. The output of a training program comes first."""
        text = self.output_of(OFFPROF, *arguments, "--format", "json")
        report: dict[str, Any] = json.loads(text[text.index('{\n  "schema"') :])
        return report

    def test_wheel_has_its_parts_and_no_others(self) -> None:
        files = {str(file) for file in distribution("offprof").files or ()}
        for part in (
            "bin/offprof",
            "liboffprof_engine.so",
            "liboffprof_cuda.so",
            "virtual_gpu/libcudart.so.13",
            "virtual_gpu/liboffprof_virtual_gpu_opener.so",
            "activations.py",
            "integrations/transformers.py",
            "startup/sitecustomize.py",
            "torch_version.py",
            "share/offprof/profiles/h200.json",
            "share/man/man1/offprof-tune.1.gz",
            "share/bash-completion/completions/offprof",
            "share/doc/offprof/copyright",
        ):
            self.assertIn(f"offprof/{part}", files)
        self.assertTrue(any(file.startswith("offprof/_extension.") for file in files), files)
        # The command is outside of the packages.
        folders = {file.split("/")[0] for file in files}
        self.assertLessEqual(folders - {".."}, {"offprof", f"offprof-{distribution('offprof').version}.dist-info"})

    def test_wheel_requires_the_torch_that_it_was_built_against(self) -> None:
        minor = ".".join(distribution("torch").version.split(".")[:2])
        self.assertEqual(distribution("offprof").requires, [f"torch=={minor}.*"])

    def test_version_names_the_torch_of_this_environment(self) -> None:
        version = self.output_of(OFFPROF, "--version", "--verbose")
        self.assertIn(distribution("torch").version.split("+")[0], version)

    def test_doctor_finds_everything_in_this_environment(self) -> None:
        findings = {finding["name"]: finding for finding in self.report_of("doctor")["findings"]}
        self.assertTrue(self.report_of("doctor")["run_works"], findings)
        for name in ("engine", "virtual GPU"):
            self.assertTrue(findings[name]["detail"].startswith(sys.prefix), findings[name])
        self.assertTrue(findings["Python"]["detail"].startswith(sys.prefix), findings["Python"])

    def check_a_device(self, device: str) -> None:
        """Records a program, tunes the trace, and trains under the policy."""
        program = (PROGRAM, "--", "--device", "cpu" if device == "host" else "cuda", "--steps", "400")
        text = self.output_of(OFFPROF, "run", "--device", device, "-o", "t.json.gz", *program)
        self.assertIn("peak", text)
        self.report_of("tune", "t.json.gz", "--no-plan", "--max-slowdown", "10000%", "-o", "policy.json")
        predicted = self.report_of("simulate", "t.json.gz", "--policy", "policy.json")["predicted"]
        arguments = ("--device", device, "--policy", "policy.json", "-o", "offloaded.json.gz")
        self.output_of(OFFPROF, "run", *arguments, *program)
        measured = self.report_of("simulate", "offloaded.json.gz", "--policy", "policy.json")["predicted"]
        self.assertEqual(measured["device_peak_bytes"], predicted["device_peak_bytes"])

    def test_run_and_tune_on_host(self) -> None:
        self.check_a_device("host")

    def test_run_and_tune_on_a_virtual_gpu(self) -> None:
        self.check_a_device(GPU)

    def train(self, policy: str, *runner: object) -> dict[str, Any]:
        """Trains the user's program under the policy, and returns what it prints."""
        (self.folder / "train.py").write_text(TRAINING)
        result: dict[str, Any] = json.loads(
            self.output_of(*runner, sys.executable, "train.py", policy).splitlines()[-1]
        )
        return result

    def test_offloading_in_a_training_loop_keeps_the_gradients(self) -> None:
        kept, offloaded = self.train("keep"), self.train("offload")
        self.assertEqual(offloaded["gradients"], kept["gradients"])
        self.assertEqual(kept["moved"], 0)
        self.assertGreater(offloaded["moved"], 0)

    def test_offloading_in_a_training_loop_on_a_virtual_gpu(self) -> None:
        exec_command = (OFFPROF, "exec", "--device", GPU, "--")
        kept, offloaded = self.train("keep", *exec_command), self.train("offload", *exec_command)
        self.assertLess(offloaded["peak"], kept["peak"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
