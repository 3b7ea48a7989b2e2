"""Tests of `offprof exec`."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
from conftest import Exec, Executed, build_folder, gpu_profile, run_under_exec


@pytest.fixture(scope="session")
def program() -> str:
    """Path of the program offprof."""
    return str(build_folder() / "offprof")


@pytest.fixture
def execute(tmp_path: Path) -> Exec:
    """A function that runs a command, or a Python script, under `offprof exec`."""

    def run(
        *words: str, script: str = "", options: tuple[str, ...] = (), variables: dict[str, str] | None = None
    ) -> Executed:
        return run_under_exec(tmp_path, options, words, script, variables)

    return run


TRAINING = """
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

# The script's own view of its memory.
WITNESS = (
    TRAINING
    + """
    import json
    stats = torch.cuda.memory_stats()
    print(json.dumps([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(),
                      stats["requested_bytes.all.peak"]]))
"""
)


def test_figures_are_those_that_the_script_sees(execute: Exec) -> None:
    done = execute(script=WITNESS)
    assert done.status == 0
    process = done.process
    assert json.loads(done.out) == [
        process["peak_allocated_bytes"],
        process["peak_reserved_bytes"],
        process["peak_requested_bytes"],
    ]
    assert process["out_of_memory_errors"] == 0
    assert process["unwritten_calls"] == []


def test_reports_the_command_and_the_device(execute: Exec) -> None:
    done = execute("--size", "[1,2]", script=TRAINING, options=("--device", "virtual:l4"))
    assert done.report["device"] == "virtual:l4"
    assert done.report["device_name"] == "NVIDIA L4"
    assert done.report["executed"][2:] == ["--size", "[1,2]"]
    assert done.process["command"][2:] == ["--size", "[1,2]"]
    assert done.report["times_are_modelled"] is True
    assert done.process["modelled_time_ns"] > 0


HOST_TIMES_MS = {
    "operator": 1,
    "python_call": 20,
    "python_function": 100,
    "recording": 400,
    "node": 8000,
    "launch": 160_000,
    "random_number": 700,
}


HOST_WORK: dict[str, dict[str, int]] = {
    "x.view(4, 2)": {"operator": 1, "python_call": 1},
    "x.t()": {"operator": 3, "python_call": 1},  # calls transpose, which calls as_strided
    "x.add_(1)": {"operator": 1, "python_call": 1, "launch": 1},
    "w * x": {"operator": 1, "python_call": 1, "recording": 1, "launch": 1},
    "call_beside(lambda: x.view(4, 2))": {},
    # These call empty, and an operator that draws numbers into it.
    "torch.randn(3)": {"operator": 3, "random_number": 3},
    "torch.randint(9, (2, 2))": {"operator": 3, "random_number": 4},
    "torch.empty(5).bernoulli_()": {"operator": 2, "python_call": 1, "random_number": 5},
    "x.normal_()": {"operator": 1, "python_call": 1, "launch": 1},  # drawn on the GPU
    # Backward runs the nodes of the product, which calls aten::mul, and of the weight, which calls two detach.
    "y.backward(x, retain_graph=True)": {"operator": 3, "node": 2, "launch": 1},
    # A module runs _wrapped_call_impl, _call_impl, forward, and here a function.
    "Views()(x)": {"operator": 1, "python_call": 1, "python_function": 4},
    "KeepsKeys()(x)": {"python_function": 5},  # also __hash__ of each key; __eq__, which addresses decide, is left out
    "identity(x).view(4, 2)": {"operator": 1, "python_call": 1},  # in no module, optimizer or backward
    # forward returns a view; the class's node runs its function apply, which calls backward.
    "Same.apply(w).backward(x)": {"operator": 6, "python_call": 1, "recording": 1, "node": 2, "python_function": 2},
}


def test_operators_and_functions_take_the_time_of_the_host(execute: Exec, tmp_path: Path) -> None:
    profile = gpu_profile("h100-80gb")
    profile["host"] = {f"{kind}_ns": milliseconds * 10**6 for kind, milliseconds in HOST_TIMES_MS.items()}
    profile["kernels"]["launch_ns"] = 1
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile))
    script = f"""
        import json
        import threading
        import torch

        def call_beside(work):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        def identity(x):
            return x

        class Views(torch.nn.Module):
            def forward(self, x):
                return identity(x.view(4, 2))

        class Key:
            def __hash__(self):
                return 0

            def __eq__(self, other):
                return identity(False)

        class KeepsKeys(torch.nn.Module):
            def forward(self, x):
                return {{Key(): x, Key(): x}}

        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        x = torch.ones(2, 4, device="cuda")
        w = torch.ones(2, 4, device="cuda", requires_grad=True)
        y = w * torch.ones(2, 4, device="cuda")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        taken_ms = {{}}
        for work in {list(HOST_WORK)}:
            function = compile(work, "work", "eval")
            eval(function)
            w.grad = None
            begin.record()
            eval(function)
            end.record()
            torch.cuda.synchronize()
            taken_ms[work] = round(begin.elapsed_time(end))
        print(json.dumps(taken_ms))
    """
    done = execute(script=script, options=("--device", f"virtual:{path}"))
    assert done.status == 0, done.err
    assert json.loads(done.out) == {
        work: sum(HOST_TIMES_MS[kind] * count for kind, count in counts.items()) for work, counts in HOST_WORK.items()
    }


@pytest.mark.parametrize(
    ("setting", "is_faster"),
    [
        ("", False),
        ("torch.backends.cuda.matmul.allow_tf32 = True", True),
        ("torch.set_float32_matmul_precision('high')", True),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", True),
        ("torch.backends.cudnn.allow_tf32 = True", False),
    ],
)
def test_products_run_in_tf32_if_the_program_allows_it(execute: Exec, setting: str, is_faster: bool) -> None:
    script = f"""
        import torch

        {setting}
        x = torch.ones(4096, 4096, device="cuda")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        x @ x
        end.record()
        torch.cuda.synchronize()
        print(begin.elapsed_time(end))
    """
    done = execute(script=script, options=("--device", "virtual:h100-80gb"))
    # 137 billion operations at the peak of 66.9 TFLOP/s without tensor cores.
    assert (float(done.out) < 2 * 4096**3 / 66.9e9) == is_faster, done.err


def test_standard_output_belongs_to_the_command(program: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint(torch.zeros(1, device='cuda').shape)\n")
    done = subprocess.run(
        [program, "exec", "--", sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "torch.Size([1])\n"
    assert "peaks, by torch.cuda.memory_stats" in done.stderr
    assert "modelled, not measured" in done.stderr


def test_peaks_survive_a_reset(execute: Exec) -> None:
    done = execute(
        script="""
        import torch

        big = torch.zeros(1 << 24, dtype=torch.uint8, device="cuda")
        del big
        torch.cuda.reset_peak_memory_stats()
        small = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
        print(torch.cuda.max_memory_allocated())
        """
    )
    assert int(done.out) == 1 << 20
    assert done.process["peak_requested_bytes"] == 1 << 24


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(5)", 5),
        ("raise ValueError", 1),
        ("os._exit(6)", 6),
        ("os.kill(os.getpid(), signal.SIGINT); signal.pause()", 128 + signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", 128 + signal.SIGTERM),
    ],
)
def test_every_end_has_its_status_and_figures(execute: Exec, end: str, status: int) -> None:
    done = execute(script=f"import os, signal, sys, torch\ntorch.zeros(3, device='cuda')\n{end}\n")
    assert done.status == done.report["exit_status"] == status
    assert done.process["peak_requested_bytes"] == 12


# The thread of the backward pass frees the callback some time after the pass.
CALLBACK_AT_THE_END = """
    import torch

    class Callback(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            torch.autograd.Variable._execution_engine.queue_callback(lambda: None)
            return gradient * 2

    Callback.apply(torch.ones(1000, device="cuda", requires_grad=True)).sum().backward()
"""


def test_a_program_may_end_right_after_a_backward_pass(execute: Exec, tmp_path: Path) -> None:
    script = tmp_path / "callback.py"
    script.write_text(textwrap.dedent(CALLBACK_AT_THE_END), encoding="utf-8")
    again_and_again = f"for i in $(seq 8); do {sys.executable} {script} || exit 1; done"  # without us, one of 5 aborts
    done = execute("sh", "-c", again_and_again)
    assert (done.status, done.err) == (0, "")


def test_a_killed_process_is_reported_without_figures(execute: Exec) -> None:
    done = execute(
        script="import os, signal, torch\ntorch.zeros(3, device='cuda')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.status == 128 + signal.SIGKILL
    assert done.process["ended"] is False
    assert "peak_allocated_bytes" not in done.process


def test_a_script_that_handles_sigterm_keeps_its_handler(execute: Exec) -> None:
    done = execute(
        script="""
        import os, signal, sys, torch

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
        torch.zeros(3, device="cuda")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
        """
    )
    assert done.status == 9
    assert done.process["ended"] is True


def test_reports_running_out_of_memory(execute: Exec) -> None:
    done = execute(
        script="""
        import torch

        try:
            torch.zeros(1 << 31, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            print("caught")
        """,
        options=("--device-memory", "1GiB"),
    )
    assert done.out == "caught\n"
    assert done.report["device_memory_bytes"] == 1 << 30
    assert done.process["out_of_memory_errors"] == 1


def test_reports_forked_and_spawned_processes(execute: Exec) -> None:
    done = execute(
        script="""
        import multiprocessing
        import os


        def use(elements):
            import torch

            torch.zeros(elements, dtype=torch.uint8, device="cuda")


        if __name__ == "__main__":
            import torch

            for method, elements in (("fork", 1000), ("spawn", 2000)):
                process = multiprocessing.get_context(method).Process(target=use, args=(elements,))
                process.start()
                process.join()
                assert process.exitcode == 0
            if (child := os.fork()) == 0:
                use(3000)
                os._exit(0)
            os.waitpid(child, 0)
            use(4000)
            if (child := os.fork()) == 0:  # after CUDA is initialised, a fork cannot use it
                os._exit(0)
            os.waitpid(child, 0)
        """
    )
    assert done.status == 0
    assert [process["peak_requested_bytes"] for process in done.processes] == [1000, 2000, 3000, 4000]
    assert len({process["pid"] for process in done.processes}) == 4


def test_modules_pytest_and_torchrun_use_the_gpu(execute: Exec, tmp_path: Path) -> None:
    (tmp_path / "use_gpu.py").write_text("import torch\nprint(torch.zeros(5, device='cuda').device)\n")
    (tmp_path / "test_gpu.py").write_text("def test_gpu():\n    import use_gpu\n")
    for command in (
        ("-m", "use_gpu"),
        ("-m", "pytest", "-q", "test_gpu.py"),
        ("-m", "torch.distributed.run", "--nproc-per-node", "1", "use_gpu.py"),
    ):
        done = execute(sys.executable, *command)
        assert done.status == 0, done.err
        assert done.process["peak_requested_bytes"] == 20


NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "use",
            "metadata": {},
            "outputs": [],
            "source": "import torch\nprint(torch.zeros(5, device='cuda').device)",
        }
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
# Commands that start Python for a program, by the packages that they need.
LAUNCHERS = {
    ("accelerate",): ("-m", "accelerate.commands.launch", "--num_processes", "1", "use_gpu.py"),
    ("nbconvert", "ipykernel"): ("-m", "nbconvert", "--to", "notebook", "--execute", "use_gpu.ipynb"),
}


def installed_launchers() -> list[tuple[str, ...]]:
    """Returns the commands whose packages are installed; warns of the others."""
    left_out = [needs for needs in LAUNCHERS if not all(map(importlib.util.find_spec, needs))]
    if left_out:
        warnings.warn(f"not installed (scripts/setup.sh --programs): {left_out}", stacklevel=1)
    return [command for needs, command in LAUNCHERS.items() if needs not in left_out]


@pytest.mark.parametrize("command", installed_launchers(), ids=lambda command: command[1].partition(".")[0])
def test_launchers_and_notebooks_use_the_gpu(execute: Exec, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "use_gpu.py").write_text("import torch\nprint(torch.zeros(5, device='cuda').device)\n")
    (tmp_path / "use_gpu.ipynb").write_text(json.dumps(NOTEBOOK))
    done = execute(sys.executable, *command)
    assert done.status == 0, done.err
    assert 20 in [process.get("peak_requested_bytes") for process in done.processes], done.report


def test_a_shell_script_passes_the_gpu_on(execute: Exec) -> None:
    done = execute("sh", "-c", f"{sys.executable} -c 'import torch; torch.zeros(1).cuda()' && exit 4")
    assert done.status == 4
    assert done.process["peak_requested_bytes"] == 4


def test_processes_without_torch_are_not_changed(execute: Exec) -> None:
    code = "import sys; print(sorted(sys.modules)); print(sys.path[1:])"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    done = execute(sys.executable, "-c", code)
    assert done.processes == []
    modules = [line.splitlines()[0].replace("'sitecustomize', ", "") for line in (alone.stdout, done.out)]
    assert modules[0] == modules[1]
    assert alone.stdout.splitlines()[1] == done.out.splitlines()[1]


def test_asking_whether_torch_is_installed_opens_nothing(execute: Exec) -> None:
    done = execute(
        script="""
        import importlib.util, sys

        print(importlib.util.find_spec("torch") is not None, "offprof.virtual_gpu" in sys.modules)
        """
    )
    assert done.out == "True False\n"
    assert done.processes == []


def test_runs_the_users_sitecustomize(execute: Exec, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.was_run = True\n")
    done = execute(
        script="import sitecustomize, torch\nprint(was_run, sitecustomize.__file__)\ntorch.zeros(1).cuda()\n",
        variables={"PYTHONPATH": str(tmp_path / "site")},
    )
    assert done.out == f"True {tmp_path}/site/sitecustomize.py\n"
    assert done.process["peak_requested_bytes"] == 4


def test_reports_why_the_gpu_could_not_be_opened(execute: Exec, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\ncuda = None\nhip = None\n")
    done = execute(script="import torch\n", variables={"PYTHONPATH": str(tmp_path)})
    assert done.status == 1
    assert "was built without CUDA" in done.process["problem"]
    assert "\n" not in done.process["problem"]
    assert "UnavailableError" in done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_passes_signals_on_to_the_command(program: str, tmp_path: Path, number: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import signal, torch\ntorch.zeros(3, device='cuda')\nprint('ready', flush=True)\nsignal.pause()\n"
    )
    report = tmp_path / "report.json"
    line = [program, "exec", "--format", "json", "-o", str(report), "--", sys.executable, str(script)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        os.kill(running.pid, number)
        assert running.wait() == 128 + number
    assert json.loads(report.read_text())["processes"][0]["peak_requested_bytes"] == 12


def test_times_follow_the_operators(execute: Exec) -> None:
    """The time of a large product is that of its operations at the profile's rate and efficiency."""
    done = execute(
        script="""
        import torch

        a = torch.zeros(8192, 8192, device="cuda", dtype=torch.bfloat16)
        a @ a
        """
    )
    at_the_limit_ns = 2 * 8192**3 / (989.4e12 * 0.77) * 1e9
    assert at_the_limit_ns < done.process["modelled_time_ns"] < 1.2 * at_the_limit_ns


def test_reports_values_that_were_read_back(execute: Exec) -> None:
    done = execute(script="import torch\ntorch.randn(3, device='cuda').nonzero()\n")
    assert done.process["value_reads"] == ["aten::nonzero"]


def test_what_moves_to_the_host_is_not_read(execute: Exec) -> None:
    done = execute(
        script="""
        import torch

        weight = torch.randn(8, 8, device="cuda", requires_grad=True)
        for pin_memory in (False, True):
            with torch.autograd.graph.save_on_cpu(pin_memory=pin_memory):
                loss = (weight * weight).sum()
            loss.backward()
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.cpu(), lambda saved: saved.cuda()):
            weight.square().sum().backward()
        """
    )
    assert done.process["value_reads"] == []
    read = execute(script="import torch\ntorch.randn(3, device='cuda').cpu()\n")
    assert read.process["value_reads"] == ["aten::copy_"]
