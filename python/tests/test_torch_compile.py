"""Tests of torch.compile on the virtual GPU, under `offprof exec`. Those that compile kernels need Triton."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from test_exec import Exec, execute, program

__all__ = ["execute", "program"]  # fixtures

# Shortest kernel and host time of a launch on h200 (engine/devices/virtual_gpu/model/profiles/h200.json).
KERNEL_NS = 2000
LAUNCH_NS = 5000
ATTENTION = """
import torch

class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.products = torch.nn.Linear(64, 192, bias=False)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (2, 32)).transpose(1, 2) for part in self.products(x).split(64, dim=2))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

model = Attention().cuda().bfloat16()
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    compiled(torch.randn(4, 128, 64, device="cuda", dtype=torch.bfloat16)).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
def test_refuses_max_autotune(execute: Exec, mode: str) -> None:
    done = execute(script=f"import torch\ntorch.compile(torch.sin, mode={mode!r})(torch.zeros(9, device='cuda'))\n")
    assert done.status == 1
    assert "torch.compile with max-autotune chooses kernels by their measured times" in done.err


def test_refuses_cuda_graphs(execute: Exec) -> None:
    done = execute(script="import torch\ntorch.compile(torch.sin, mode='reduce-overhead')(torch.zeros(9).cuda())\n")
    assert done.status == 1
    assert "torch.compile with CUDA graphs (mode='reduce-overhead') needs stream capture" in done.err


if HAS_TRITON:

    @pytest.fixture
    def caches(tmp_path: Path) -> dict[str, str]:
        """Variables that keep the caches of compiled kernels in a folder of the test."""
        return {"XDG_CACHE_HOME": str(tmp_path / "caches"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "users")}

    def test_compiles_forward_and_backward(execute: Exec, tmp_path: Path, caches: dict[str, str]) -> None:
        done = execute(
            script="""
            import torch

            model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256)).cuda()
            compiled = torch.compile(model)
            compiled(torch.randn(8, 64, device="cuda", requires_grad=True)).sum().backward()
            print(model[0].weight.grad.shape)
            """,
            variables=caches,
        )
        assert done.status == 0, done.err
        assert done.out == "torch.Size([256, 64])\n"
        assert done.process["unwritten_calls"] == []
        assert (tmp_path / "caches" / "offprof" / "h200" / "triton").is_dir()
        assert not (tmp_path / "users").exists()

    def test_folds_constants_to_their_values(execute: Exec, caches: dict[str, str]) -> None:
        """Without the fix `x + full(3) * 2` becomes x: the constant that is read from the device is 0."""
        done = execute(
            script="""
            import torch
            from torch._inductor.utils import run_and_get_code

            def add_six(x):
                return x + torch.full((4,), 3.0, device="cuda") * 2

            print(run_and_get_code(torch.compile(add_six), torch.zeros(4, device="cuda"))[1][0])
            """,
            variables=caches,
        )
        assert done.status == 0, done.err
        assert "6.0" in done.out

    # A Triton kernel that adds x and y into out, and the virtual time that a call takes with its launches.
    ADD_KERNEL = """
import torch
import triton
import triton.language as tl
from offprof.virtual_gpu import opened_virtual_gpu

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

def time_of(call):
    gpu = opened_virtual_gpu()
    torch.cuda.synchronize()
    before = gpu.state()
    call()
    torch.cuda.synchronize()
    after = gpu.state()
    return after.host_time_ns - before.host_time_ns, after.launches - before.launches
"""

    def nanoseconds(done: Any) -> int:
        """Returns the last number that a script printed, which must have succeeded."""
        assert done.status == 0, done.err
        return int(done.out.split()[-1])

    def test_a_triton_kernel_moves_the_memory_of_its_arguments(execute: Exec, caches: dict[str, str]) -> None:
        done = execute(
            script=ADD_KERNEL
            + """
x, y, out = (torch.zeros(2**28, device="cuda") for _ in range(3))
add_kernel[(1,)](x, y, out, 2**28, BLOCK=256)  # compiles
time, launches = time_of(lambda: add_kernel[(2**20,)](x, y, out, 2**28, BLOCK=256))
print(launches, time)
""",
            variables=caches,
        )
        assert done.out.startswith("1 ")
        # 3 GiB at 0.915 * 4.8 TB/s, the shortest kernel, and the launch.
        assert nanoseconds(done) == pytest.approx(733430 + KERNEL_NS + LAUNCH_NS, abs=1)

    def test_a_slice_reaches_from_its_beginning_to_the_end_of_its_block(execute: Exec, caches: dict[str, str]) -> None:
        done = execute(
            script=ADD_KERNEL
            + """
x = torch.zeros(2**28, device="cuda")
half = x[2**27:]
add_kernel[(1,)](half, half, half, 2**27, BLOCK=256)
print(*time_of(lambda: add_kernel[(2**19,)](half, half, half, 2**27, BLOCK=256))[::-1])
""",
            variables=caches,
        )
        # 0.5 GiB, which all three arguments reach, at 0.915 * 4.8 TB/s, the shortest kernel, and the launch.
        assert nanoseconds(done) == pytest.approx(122238 + KERNEL_NS + LAUNCH_NS, abs=1)

    def test_a_compiled_program_moves_the_memory_of_its_kernels(execute: Exec, caches: dict[str, str]) -> None:
        done = execute(
            script=ADD_KERNEL
            + """
x = torch.zeros(2**28, device="cuda")
compiled = torch.compile(lambda x: torch.sin(x) * 2)
compiled(x)
print(*time_of(lambda: compiled(x))[::-1])
""",
            variables=caches,
        )
        assert done.out.startswith("1 ")
        # One kernel reads 1 GiB and writes 1 GiB at 0.915 * 4.8 TB/s. Two operators, one with the launch, take the host's
        # time: operator_ns, python_call_ns and launch_ns of the profile.
        host_ns = 2 * (1010 + 2360) + 6290
        assert nanoseconds(done) == pytest.approx(488953 + KERNEL_NS + LAUNCH_NS + host_ns, abs=1)

    def test_notes_a_choice_by_benchmark(execute: Exec, caches: dict[str, str]) -> None:
        done = execute(
            script="""
            import torch

            a = torch.zeros(2048, 768, device="cuda", dtype=torch.bfloat16)
            b = torch.zeros(768, 50257, device="cuda", dtype=torch.bfloat16)
            torch.compile(torch.mm)(a, b)
            """,
            variables=caches,
        )
        assert done.status == 0, done.err
        assert any("pad_mm" in note for note in done.process["notes"])

    def test_records_code_that_refuses_the_strides_of_trl(
        offprof: Run, tmp_path: Path, caches: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Query, key and value are views of one product. Inductor's code asserts their strides in backward."""
        for name, value in caches.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "train.py").write_text(ATTENTION)
        end = offprof("run", "train.py", "--device", "virtual:h200", "-o", "t.json")
        assert end.returncode == 0, end.stderr
        notes = " ".join(json.loads((tmp_path / "t.json").read_text())["notes"])
        assert "TRL would return a tensor of compiled code with other strides" in notes
