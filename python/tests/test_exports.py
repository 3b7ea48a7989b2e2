"""Loads the settings that `offprof export` writes with the packages that they are for.

Packages that are not installed are skipped. tests/programs/export_witness.py compares the figures with the engines.
"""

from __future__ import annotations

import importlib
import inspect
import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import PROGRAMS, Run, build_folder, write_policy


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of `blocks.py`, with what can be recomputed."""
    path = tmp_path_factory.mktemp("exports") / "t.json.gz"
    command = [build_folder() / "offprof", "run", PROGRAMS / "blocks.py", "--python", sys.executable]
    command += ["--policy", "keep", "--transforms", "recompute", "--device", "host", "-o", path]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return path


class Exporter:
    """Runs `offprof export` on one trace."""

    def __init__(self, trace: Path, folder: Path) -> None:
        self.trace, self.folder = trace, folder

    def report(self, target: str, *flags: str, **settings: Any) -> dict[str, Any]:
        """Returns the report of the export of a policy with these settings."""
        policy = write_policy(self.folder / "policy.json", "tested", **settings)
        command = [build_folder() / "offprof", "export", policy, "--trace", self.trace, "--to", target, *flags]
        ended = subprocess.run(
            [*map(str, command), "--format", "json"], check=True, capture_output=True, text=True, cwd=self.folder
        )
        report: dict[str, Any] = json.loads(ended.stdout)
        return report

    def names(self, target: str, **settings: Any) -> dict[str, Any]:
        """Returns the names that the exported Python code defines."""
        names: dict[str, Any] = {}
        exec(compile(self.report(target, **settings)["snippet"], "exported.py", "exec"), names)
        return names


@pytest.fixture
def exporter(trace: Path, tmp_path: Path) -> Exporter:
    return Exporter(trace, tmp_path)


RECOMPUTE = [{"op": "*", "placement": "recompute"}]


@pytest.mark.parametrize(
    ("target", "package"), [("trl", "trl.models.activation_offloading"), ("torchtune", "torchtune.training")]
)
def test_the_class_accepts_the_arguments(exporter: Exporter, target: str, package: str) -> None:
    library = pytest.importorskip(package)
    names = exporter.names(target, threshold_bytes=4096, stash_count=2)
    assert names["OffloadActivations"] is library.OffloadActivations
    accepted = inspect.signature(library.OffloadActivations).parameters
    for argument in ("use_pin_memory", "use_streams", "min_offload_size", "max_fwd_stash_size"):
        assert argument in accepted


def test_transformers_accepts_the_arguments(exporter: Exporter) -> None:
    pytest.importorskip("transformers")
    arguments = exporter.names("transformers", rules=RECOMPUTE)["training_args"]
    assert arguments.gradient_checkpointing
    assert arguments.gradient_checkpointing_kwargs == {"use_reentrant": False}


def test_selective_checkpointing_keeps_the_gradients(exporter: Exporter) -> None:
    names = exporter.names("pytorch", rules=RECOMPUTE)
    blocks = runpy.run_path(str(PROGRAMS / "blocks.py"))
    gradients = []
    for wrap in (lambda model: None, names["checkpoint_selectively"]):
        torch.manual_seed(0)
        model = blocks["Blocks"]()
        wrap(model)
        model(torch.randn(4, 32, 64)).sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert names["RECOMPUTED"] == ["layers.0", "layers.1"]
    assert torch.ops.aten.gelu in names["RECOMPUTED_OPS"]
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_patterns_of_checkpointed_modules_wrap_the_outermost(tmp_path: Path) -> None:
    offprof = str(build_folder() / "offprof")
    for words in (
        ["zoo", "make", "mlp", "-o", "model.pt"],
        ["run", "model.pt", "--checkpoint", "layer*", "--steps", "1", "-o", "t.json"],
    ):
        subprocess.run([offprof, *words], check=True, capture_output=True, cwd=tmp_path)
    names = Exporter(tmp_path / "t.json", tmp_path).names("pytorch", threshold_bytes=None)
    model = runpy.run_path(str(PROGRAMS / "blocks.py"))["Blocks"]()
    names["checkpoint_modules"](model)
    wrapped = [path for path, module in model.named_modules() if type(module).__name__ == "CheckpointWrapper"]
    assert wrapped == ["layers.0", "layers.1"]


def test_save_on_cpu_is_the_one_of_pytorch(exporter: Exporter) -> None:
    context = exporter.names("pytorch", threshold_bytes=0)["offload_activations"]()
    assert isinstance(context, torch.autograd.graph.save_on_cpu)


IN_CONTEXT = ("        loss = model", "        with exported.offload_activations():\n            loss = model")


def wrapped_by(function: str) -> tuple[str, str]:
    """Returns a line of `blocks.py`, and the line with a call of the exported function before it."""
    return "    optimizer = ", f"    exported.{function}(model)\n    optimizer = "


@pytest.mark.parametrize(
    ("flags", "settings", "edits", "differs"),
    [
        ([], {"threshold_bytes": 0}, [IN_CONTEXT], "device_peak_bytes"),
        (
            [],
            {"threshold_bytes": None, "rules": RECOMPUTE},
            [wrapped_by("checkpoint_selectively")],
            "device_peak_bytes",
        ),
        (
            ["--checkpoint", "layers.*", "--policy", "keep"],
            {"threshold_bytes": 0},
            [wrapped_by("checkpoint_modules"), IN_CONTEXT],
            "step_time_ns",
        ),
    ],
    ids=["save_on_cpu", "selective_checkpointing", "checkpointing_and_save_on_cpu"],
)
def test_recorded_figures_are_those_of_a_script_with_the_code(
    report_of: Callable[..., dict[str, Any]],
    tmp_path: Path,
    untimed_functions: str,
    flags: list[str],
    settings: dict[str, Any],
    edits: list[tuple[str, str]],
    differs: str,
) -> None:
    python = ("--python", sys.executable, "--device", untimed_functions)
    report_of("run", PROGRAMS / "blocks.py", *python, *flags, "--transforms", "recompute", "-o", "t.json")
    report = Exporter(tmp_path / "t.json", tmp_path).report("pytorch", "--record", **settings)
    recorded = report["engine_measured"]
    (tmp_path / "exported.py").write_text(report["snippet"], encoding="utf-8")
    script = (PROGRAMS / "blocks.py").read_text(encoding="utf-8")
    for line, edited_line in edits:
        assert line in script
        script = script.replace(line, edited_line)
    edited = tmp_path / "edited.py"
    edited.write_text("import exported\n" + script, encoding="utf-8")
    measured = report_of("run", edited, *python)["measured"]
    assert recorded[differs] != report["predicted"][differs]
    for figure, value in recorded.items():
        assert value == measured[figure], figure


def test_code_without_a_function_is_refused(offprof: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\n", encoding="utf-8")
    ended = offprof("run", PROGRAMS / "blocks.py", "--device", "host", "--apply", "code.py", "-o", "t.json")
    assert ended.returncode == 2
    assert "has none of the functions" in " ".join(ended.stderr.split())  # the message is wrapped
    assert not (tmp_path / "t.json").exists()


def test_deepspeed_reads_the_fragment(exporter: Exporter, deepspeed: None) -> None:
    config = importlib.import_module("deepspeed.runtime.activation_checkpointing.config")
    fragment = json.loads(exporter.report("deepspeed", threshold_bytes=0)["snippet"])
    read = config.DeepSpeedActivationCheckpointingConfig(fragment)
    assert read.cpu_checkpointing
    assert not read.partition_activations


def test_megatron_accepts_the_settings(exporter: Exporter) -> None:
    config = pytest.importorskip("megatron.core.transformer.transformer_config")
    settings = exporter.report("megatron", threshold_bytes=4096)["settings"]
    read = config.TransformerConfig(num_layers=2, hidden_size=64, num_attention_heads=4, **settings)
    assert read.fine_grained_activation_offloading
    assert read.offload_modules == ["attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm"]
    assert read.min_offloaded_tensor_size == 1024


def test_fsdp2_code_loads(exporter: Exporter) -> None:
    names = exporter.names("fsdp2", threshold_bytes=0)
    assert names["fully_shard"] is torch.distributed.fsdp.fully_shard
    assert names["SHARDED"] == ["layers.0", "layers.1", "lm_head"]
