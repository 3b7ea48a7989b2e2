"""Tests of torch.compile on the virtual GPU, under `offprof exec`. Those that compile kernels need Triton."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from test_exec import Exec, execute, program

__all__ = ["execute", "program"]  # fixtures

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

    def test_launches_a_triton_kernel(execute: Exec, caches: dict[str, str]) -> None:
        done = execute(
            script="""
            import torch
            import triton
            import triton.language as tl
            from offprof.virtual_gpu import opened_virtual_gpu

            @triton.jit
            def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
                at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                mask = at < n
                tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

            x = torch.zeros(1000, device="cuda")
            gpu = opened_virtual_gpu()
            before = gpu.state().launches
            add_kernel[(4,)](x, x, x, 1000, BLOCK=256)
            print(gpu.state().launches - before)
            """,
            variables=caches,
        )
        assert done.status == 0, done.err
        assert done.out == "1\n"

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
