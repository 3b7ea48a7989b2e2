"""`offprof.OffloadActivations` on the host: gradients, steps, plans, rules, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import offprof
import pytest
from conftest import PROGRAMS, build_folder, write_policy
from offprof.launcher import failure_hint

offprof.open_device("host")  # before the first tensor

import torch  # noqa: E402
from torch import nn  # noqa: E402


class Program:
    """A small training program, always from the same numbers."""

    def __init__(self, width: int = 32) -> None:
        torch.manual_seed(1)
        self.width = width
        self.model = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.gradients: list[torch.Tensor] = []

    def loss(self, rows: int = 64) -> torch.Tensor:
        return self.model(torch.randn(rows, self.width)).square().mean()

    def update(self) -> None:
        self.gradients += [parameter.grad.clone() for parameter in self.model.parameters()]
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self, context: Any, steps: int = 6, rows: int = 64) -> Program:
        for _ in range(steps):
            with context:
                loss = self.loss(rows)
            loss.backward()
            self.update()
        return self


class Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def has_same_gradients(first: Program, second: Program) -> bool:
    return len(first.gradients) == len(second.gradients) and all(
        torch.equal(a, b) for a, b in zip(first.gradients, second.gradients, strict=True)
    )


def offloaded(report: offprof.OffloadingReport) -> int:
    return sum(entry["tensors"] for entry in report.ledger if entry["placement"] == "host")


@pytest.fixture(autouse=True)
def no_context_stays_entered() -> Iterator[None]:
    yield
    from offprof.activations import _Entered

    assert _Entered.context is None


def plan(path: Path, tensors: list[int], saved_fingerprint: str = "") -> str:
    """Writes a policy with a plan and returns its path."""
    write_policy(path, "plan", threshold_bytes=0, tensors=tensors)
    content = json.loads(path.read_text())
    if saved_fingerprint:
        content["saved_fingerprint"] = saved_fingerprint
    path.write_text(json.dumps(content))
    return str(path)


def fnv1a(text: str) -> str:
    """Returns the 64-bit FNV-1a hash, of which a fingerprint is made."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def saved_by(program: Program) -> str:
    """Returns the fingerprint of the tensors that a step of the program saves, observed by hooks of torch."""
    lines: list[str] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        lines.append(f"{str(tensor.dtype)[6:]}[{', '.join(map(str, tensor.shape))}]\n")
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        program.loss()
    return fnv1a("".join(lines))


SETTINGS: list[dict[str, Any]] = [
    {"policy": "keep"},
    {"policy": "offload"},
    {"policy": "trl"},
    {"threshold": "4KiB", "stash": 2, "prefetch": "1MiB"},
    {"stash_bytes": 20000, "prefetch": 16384},
    {"host_memory": "16KiB"},
    {"rules": [{"op": "*gelu*", "placement": "device"}, {"min_bytes": "8KiB", "placement": "host"}]},
    {"rules": [{"placement": "compress"}]},
    {"rules": [{"dtype": "bool", "placement": "bits"}]},
    {"rules": [{"placement": "recompute"}]},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_gradients_are_those_of_the_program_without_it(settings: dict[str, Any]) -> None:
    offloading = offprof.OffloadActivations(**settings)
    assert has_same_gradients(Program().train(offloading), Program().train(Nothing()))


class DropoutProgram(Program):
    """Draws random numbers in forward, and changes the share that it drops in some steps."""

    def __init__(self, rates: list[float]) -> None:
        super().__init__()
        self.rates = rates

    def loss(self, rows: int = 64) -> torch.Tensor:
        hidden = self.model[:4](torch.randn(rows, self.width))
        dropped = nn.functional.dropout(hidden.tanh(), self.rates.pop(0)).sigmoid()
        return self.model[4](dropped).square().mean()


def recomputed(report: offprof.OffloadingReport) -> int:
    return sum(entry["tensors"] for entry in report.ledger if entry["placement"] == "recompute")


@pytest.mark.parametrize("last", [0.5, 0.25])
def test_recomputation_draws_the_same_random_numbers(last: float) -> None:
    rates = [0.5] * 5 + [last] * 2
    offloading = offprof.OffloadActivations("keep", rules=[{"placement": "recompute"}])
    program = DropoutProgram([*rates])
    program.train(offloading, steps=len(rates))
    assert recomputed(offloading.report()) > 0
    assert has_same_gradients(program, DropoutProgram([*rates]).train(Nothing(), steps=len(rates)))


def repeated_backward(program: Program, context: Any) -> None:
    with context:
        loss = program.loss()
    loss.backward(retain_graph=True)
    loss.backward()


def double_backward(program: Program, context: Any) -> None:
    with context:
        loss = program.loss()
    gradients = torch.autograd.grad(loss, list(program.model.parameters()), create_graph=True)
    (loss + sum(gradient.square().sum() for gradient in gradients)).backward()


def checkpoint_within(program: Program, context: Any) -> None:
    with context:
        hidden = torch.utils.checkpoint.checkpoint(
            program.model[:2], torch.randn(64, program.width), use_reentrant=False
        )
        loss = program.model[2:](hidden).tanh().sigmoid().square().mean()
    loss.backward()


def lower_precision(program: Program, context: Any) -> None:
    with context, torch.autocast("cpu", dtype=torch.bfloat16):
        loss = program.loss()
    loss.float().backward()


@pytest.mark.parametrize("step", [repeated_backward, double_backward, checkpoint_within, lower_precision])
def test_recomputation_in_unusual_steps_keeps_the_gradients(step: Any) -> None:
    programs = []
    offloading = offprof.OffloadActivations("keep", rules=[{"placement": "recompute"}])
    for context in (Nothing(), offloading):
        programs.append(Program())
        for _ in range(5):
            step(programs[-1], context)
            programs[-1].update()
    assert recomputed(offloading.report()) > 0
    assert has_same_gradients(*programs)


def test_copies_what_the_policy_offloads() -> None:
    offloading = offprof.OffloadActivations("offload")
    Program().train(offloading)
    report = offloading.report()
    assert report.measured is not None
    assert report.measured["d2h_bytes"] == report.measured["h2d_bytes"] > 0
    assert report.measured["host_peak_bytes"] > 0
    assert offloaded(report) > 0


def test_offloading_lowers_the_peak() -> None:
    peaks = []
    for policy in ("keep", "offload"):
        offloading = offprof.OffloadActivations(policy)
        Program().train(offloading, rows=4096)
        measured = offloading.report().measured
        assert measured is not None
        peaks.append(measured["device_peak_bytes"])
    assert peaks[1] < peaks[0]


def test_micro_batches_are_one_step() -> None:
    offloading = offprof.OffloadActivations("offload")
    program = Program()
    for _ in range(6):
        for _ in range(3):
            with offloading:
                loss = program.loss()
            loss.backward()
        program.update()
    one = offprof.OffloadActivations("offload")
    Program().train(one)
    tensors = [sum(entry["tensors"] for entry in each.report().ledger) for each in (offloading, one)]
    assert tensors[0] == 3 * tensors[1]


def test_a_program_without_optimizer_has_a_step_for_each_entry() -> None:
    offloading = offprof.OffloadActivations("offload")
    program = Program()
    for _ in range(4):
        with offloading:
            loss = program.loss()
        torch.autograd.grad(loss, list(program.model.parameters()))
        del loss
    assert offloading.report().steps == 3  # the last one ends with the next entry


def test_a_program_ends_its_steps_by_hand() -> None:
    offloading = offprof.OffloadActivations("offload")
    program = Program()
    for _ in range(4):
        with offloading:
            program.loss().backward()
        program.update()
        offloading.step()
    assert offloading.report().steps == 3  # the first one began where it was entered


def test_the_graph_may_outlive_the_step() -> None:
    offloading = offprof.OffloadActivations("offload")
    program = Program().train(offloading, steps=3)
    with offloading:
        kept = program.loss()
    expected = torch.autograd.grad(kept, list(program.model.parameters()), retain_graph=True)
    other = Program(width=16)
    other.train(offloading, steps=4)
    again = torch.autograd.grad(kept, list(program.model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(expected, again, strict=True))


def test_a_plan_moves_the_tensors_that_it_names(tmp_path: Path) -> None:
    fingerprint = saved_by(Program())
    everything = offprof.OffloadActivations("offload")
    Program().train(everything)
    offloading = offprof.OffloadActivations(plan(tmp_path / "plan.json", [0, 1, 2, 3], fingerprint))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = Program().train(offloading)
        reasons = {entry["reason"] for entry in offloading.report().ledger}
    assert 0 < offloaded(offloading.report()) < offloaded(everything.report())
    assert "not_in_plan" in reasons
    assert has_same_gradients(program, Program().train(Nothing()))


def test_a_plan_for_another_program_gives_way_to_the_threshold(tmp_path: Path) -> None:
    offloading = offprof.OffloadActivations(plan(tmp_path / "plan.json", [0], saved_by(Program(width=16))))
    with pytest.warns(UserWarning, match="names tensors of another program") as caught:
        program = Program().train(offloading, steps=30)
    assert len(caught) == 1
    everything = offprof.OffloadActivations("offload")
    Program().train(everything)
    assert offloading.report().ledger == everything.report().ledger
    assert has_same_gradients(program, Program().train(Nothing(), steps=30))


def test_a_plan_for_another_program_gives_way_to_the_fallback(tmp_path: Path) -> None:
    path = Path(plan(tmp_path / "plan.json", [0], saved_by(Program(width=16))))
    rules = [{"op": "aten::gelu*", "placement": "device"}]
    fallback = {"policy": {"threshold_bytes": 0, "rules": rules}, "predicted": {"device_peak_bytes": 3}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "fallback": fallback}))
    offloading = offprof.OffloadActivations(path)
    with pytest.warns(UserWarning, match="the file's fallback decides instead") as caught:
        program = Program().train(offloading, steps=30)
    assert len(caught) == 1
    report = offloading.report()
    assert [entry["tensors"] for entry in report.ledger if entry["reason"] == "rule"] == [1]
    assert report.predicted is None
    assert has_same_gradients(program, Program().train(Nothing(), steps=30))


def test_a_plan_that_does_not_say_its_tensors_gives_way_to_the_threshold(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="saved_fingerprint"):
        offloading = offprof.OffloadActivations(plan(tmp_path / "plan.json", [0]))
    Program().train(offloading)
    assert offloaded(offloading.report()) > 1


def test_a_step_of_another_size_leaves_the_plan(tmp_path: Path) -> None:
    offloading = offprof.OffloadActivations(plan(tmp_path / "plan.json", [0, 1], saved_by(Program())))
    program = Program().train(offloading)
    with pytest.warns(UserWarning, match="a step saved other tensors") as caught:
        program.train(offloading, rows=80)
    assert len(caught) == 1
    assert has_same_gradients(program, Program().train(Nothing()).train(Nothing(), rows=80))


@pytest.mark.parametrize("condition", [{"op": "aten::gelu*"}, {"module": "1"}])
def test_a_rule_keeps_what_an_operator_or_a_module_saves(condition: dict[str, str]) -> None:
    offloading = offprof.OffloadActivations(rules=[{**condition, "placement": "device"}])
    Program().train(offloading)
    kept = [entry for entry in offloading.report().ledger if entry["reason"] == "rule"]
    assert [entry["tensors"] for entry in kept] == [1]


def test_hooks_of_the_program_take_precedence() -> None:
    offloading = offprof.OffloadActivations("offload")
    before = offloading.report().saved_by_other_hooks
    taken: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        taken.append(tensor)
        return tensor

    with offloading, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = Program().loss()
    loss.backward()
    assert taken
    assert offloading.report().saved_by_other_hooks - before == len(taken)


def test_cannot_be_entered_twice() -> None:
    offloading = offprof.OffloadActivations("offload")
    with offloading, pytest.raises(offprof.InputError, match="this OffloadActivations is entered already"):
        offloading.__enter__()


def test_contexts_do_not_nest() -> None:
    inner = offprof.OffloadActivations("keep")
    with (
        offprof.OffloadActivations("offload") as outer,
        pytest.raises(offprof.InputError, match="another OffloadActivations is entered already"),
    ):
        inner.__enter__()
    assert not outer.is_entered


def test_another_thread_cannot_enter() -> None:
    caught: list[BaseException] = []

    def enter() -> None:
        try:
            offprof.OffloadActivations("keep").__enter__()
        except offprof.InputError as error:
            caught.append(error)

    with offprof.OffloadActivations("offload"):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert "on the thread MainThread" in str(caught[0])


def test_can_be_entered_again_after_an_exception() -> None:
    offloading = offprof.OffloadActivations("offload")
    program = Program()
    with pytest.raises(RuntimeError, match="cannot be multiplied"), offloading:
        program.model(torch.zeros(4, 99))
    assert has_same_gradients(program.train(offloading), Program().train(Nothing()))


def test_a_forked_process_cannot_enter() -> None:
    offloading = offprof.OffloadActivations("offload")
    Program().train(offloading, steps=2)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            offloading.__enter__()
        except offprof.UnavailableError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    Program().train(offloading, steps=2)


def rule(placement: str) -> dict[str, Any]:
    return {"threshold_bytes": 0, "rules": [{"placement": placement}]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (rule("disk"), "no folder is given"),
    ],
)
def test_refuses_a_policy_that_it_cannot_carry_out(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_policy(tmp_path / "policy.json", "other", **settings)
    with pytest.raises(offprof.InputError, match=message):
        offprof.OffloadActivations(path)


def test_a_process_has_one_disk(tmp_path: Path) -> None:
    offprof.OffloadActivations(rules=[{"placement": "compress"}])
    path = write_policy(tmp_path / "policy.json", "disk", **rule("disk"))
    with pytest.raises(offprof.InputError, match="offloads to compressed memory already"):
        offprof.OffloadActivations(path, disk=tmp_path)


def test_offloads_to_a_disk(tmp_path: Path) -> None:
    path = write_policy(tmp_path / "policy.json", "disk", **rule("disk"))
    lines = run_program(sys.executable, PROGRAMS / "offloading_to_disk.py", path, folder=tmp_path).splitlines()
    assert lines == ["no folder is given", "gradients are equal", "offloads to the disk"]


def test_encodes_with_a_bounded_error() -> None:
    offloading = offprof.OffloadActivations(rules=[{"dtype": "float32", "placement": "cast:bfloat16+host"}])
    ours, theirs = Program().train(offloading), Program().train(Nothing())
    encoded = [entry for entry in offloading.report().ledger if entry["placement"] == "cast:bfloat16+host"]
    assert sum(entry["tensors"] for entry in encoded) > 0
    assert not has_same_gradients(ours, theirs)
    assert all(torch.allclose(a, b, atol=0.01) for a, b in zip(ours.gradients, theirs.gradients, strict=True))


def test_refuses_a_policy_of_another_schema(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"schema": "offprof.policy/99", "policy": {}}))
    with pytest.raises(offprof.InputError, match=r"offprof\.policy/99"):
        offprof.OffloadActivations(path)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: offprof.OffloadActivations("no-such-policy"), "neither a preset nor an existing policy file"),
        (lambda: offprof.OffloadActivations("keep", stash=3), "offloads nothing"),
        (lambda: offprof.OffloadActivations("trl", prefetch="1MiB"), "prefetch"),
        (lambda: offprof.OffloadActivations(threshold="many"), "many"),
        (lambda: offprof.OffloadActivations(rules=[{"placement": "moon"}]), "moon"),
        (lambda: offprof.OffloadActivations(device="tpu"), "no such device: tpu"),
    ],
)
def test_refuses_wrong_arguments(create: Callable[[], Any], message: str) -> None:
    with pytest.raises(offprof.InputError, match=message):
        create()


def test_a_report_before_the_first_step_has_no_figures() -> None:
    report = offprof.OffloadActivations("offload").report()
    assert report.measured is None
    assert "whole steps: 0" in str(report)


def test_the_report_compares_with_the_prediction_of_the_policy_file(tmp_path: Path) -> None:
    path = Path(write_policy(tmp_path / "policy.json", "offload", threshold_bytes=0))
    path.write_text(json.dumps({**json.loads(path.read_text()), "predicted": {"device_peak_bytes": 3 << 20}}))
    offloading = offprof.OffloadActivations(path)
    Program().train(offloading)
    report = offloading.report()
    assert report.predicted == {"device_peak_bytes": 3 << 20}
    row = next(line for line in str(report).splitlines() if line.startswith("peak of device memory"))
    assert row.endswith("3.00 MiB")
    assert "<td>3.00 MiB</td>" in report._repr_html_()


def test_settings_that_change_the_policy_drop_its_prediction(tmp_path: Path) -> None:
    path = Path(write_policy(tmp_path / "policy.json", "offload", threshold_bytes=0))
    path.write_text(json.dumps({**json.loads(path.read_text()), "predicted": {"device_peak_bytes": 3 << 20}}))
    assert offprof.OffloadActivations(path, stash=3).report().predicted is None


def test_compares_policies_on_a_step() -> None:
    program = Program()

    def step() -> None:
        program.loss(rows=4096).backward()
        program.update()

    comparison = offprof.compare(step, ["keep", "offload", "trl"])
    peaks = [(report.measured or {})["device_peak_bytes"] for report in comparison.reports.values()]
    assert list(comparison.reports) == ["keep", "offload", "trl"]
    assert peaks[1] < peaks[2] < peaks[0]
    assert len(str(comparison).splitlines()) == 4
    assert comparison._repr_html_().count("<tr>") == 4


def test_compare_refuses_too_few_steps() -> None:
    with pytest.raises(offprof.InputError, match="at least 4 steps"):
        offprof.compare(lambda: None, ["keep"], steps=3)


def run_program(*command: object, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(build_folder() / "python"), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [str(each) for each in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_counts_a_model_that_is_older_than_the_context(tmp_path: Path) -> None:
    script = PROGRAMS / "offloading_loop.py"
    peaks = [
        json.loads(run_program(sys.executable, script, order, folder=tmp_path))["device_peak_bytes"]
        for order in ("--context-first", "--model-first")
    ]
    assert peaks[0] == peaks[1] > 0


def test_on_the_virtual_gpu_peaks_are_those_of_pytorch(tmp_path: Path) -> None:
    command = [build_folder() / "offprof", "exec", "--device", "virtual:h200", "--", sys.executable]
    lines = run_program(*command, PROGRAMS / "offloading_loop.py", "--model-first", "--cuda", folder=tmp_path)
    result = json.loads(lines.splitlines()[0])
    assert result["d2h_bytes"] > 0
    assert result["device_peak_bytes"] == result["peak_of_torch"]


def test_a_reload_without_memory_raises_torchs_error_and_training_goes_on(tmp_path: Path) -> None:
    command = [build_folder() / "offprof", "exec", "--device", "virtual:h200", "--device-memory", "1GiB", "--"]
    lines = run_program(*command, sys.executable, PROGRAMS / "offloading_out_of_memory.py", folder=tmp_path)
    assert lines.splitlines()[:2] == ["OutOfMemoryError in backward", "trained on"]


def test_encoding_without_memory_raises_torchs_error_and_training_goes_on(tmp_path: Path) -> None:
    command = [build_folder() / "offprof", "exec", "--device", "virtual:h200", "--device-memory", "1GiB", "--"]
    script = PROGRAMS / "offloading_encode_out_of_memory.py"
    lines = run_program(*command, sys.executable, script, folder=tmp_path).splitlines()
    assert lines[:3] == ["OutOfMemoryError in forward", "left", "encodes"]


def test_does_nothing_while_the_program_is_recorded(tmp_path: Path) -> None:
    command = [build_folder() / "offprof", "run", "--format", "json", "--device", "host", "--policy", "keep"]
    script = [PROGRAMS / "offloading_loop.py", "--", "--context-first", "--steps", "400"]
    lines = run_program(*command, "--python", sys.executable, *script, folder=tmp_path)
    report = json.loads(lines[lines.index('{\n  "schema"') :])
    assert report["measured"]["d2h_bytes"] == 0
    assert sum(entry["tensors"] for entry in report["ledger"]) > 0


def test_what_fits_only_with_recomputation_fits_from_the_first_step_on(tmp_path: Path) -> None:
    command = [build_folder() / "offprof", "exec", "--device", "virtual:h200", "--device-memory", "1GiB", "--"]
    lines = run_program(*command, sys.executable, PROGRAMS / "offloading_recompute_tight.py", folder=tmp_path)
    assert lines.splitlines()[0] == "trained, recomputes"


def test_a_program_that_does_not_fit_on_a_gpu_is_told_of_the_context() -> None:
    error = type("OutOfMemoryError", (RuntimeError,), {})()
    assert "OffloadActivations" in failure_hint("cuda", error, [])
    assert "traceback" in failure_hint("cuda", ValueError(), [])
    assert "traceback" in failure_hint("host", error, [])
    no_gpu = RuntimeError("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU")
    assert "--device virtual:h100-80gb" in failure_hint("host", no_gpu, [])
    assert "--world-size" in failure_hint("virtual", KeyError("LOCAL_RANK"), [])
    on_another = RuntimeError("the model computes on a CUDA stream of its own, but offprof tracks")
    assert "default stream" in failure_hint(
        "virtual", on_another, ["values are read back from the device (aten::item)"]
    )
    reads = "values are read back from the device (aten::equal): on a virtual GPU they are zeros"
    assert failure_hint("virtual", error, [reads]).endswith(
        "as zeros (aten::equal): that may be why, as where it leaves out steps whose gradients are not finite. If a "
        "router chooses experts by them, --assume balanced-experts gives "
        "its choice"
    )
    assert "zeros" not in failure_hint("virtual", error, ["kernel times: none"])
