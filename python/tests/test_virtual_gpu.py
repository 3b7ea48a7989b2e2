"""Tests of offprof.virtual_gpu. Each opens the virtual GPU in a process of its own."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = str(Path(os.environ.get("OFFPROF_BUILD", ROOT / "build")) / "python")
TORCH = runpy.run_path(f"{PACKAGES}/offprof/torch_version.py")
BUILT_FOR: str = TORCH["TORCH_VERSION"]
OTHER_SUPPORTED = next(f"{minor}.0" for minor in TORCH["SUPPORTED_VERSIONS"] if not BUILT_FOR.startswith(f"{minor}."))


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script that can import offprof."""
    code = f"import sys\nsys.path.insert(0, {PACKAGES!r})\n" + textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def output_of(script: str) -> str:
    done = run(script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def error_of(script: str) -> str:
    """Returns the last lines of a script that fails, from the exception on."""
    done = run(script)
    assert done.returncode == 1, done.stderr
    return "offprof.errors." + done.stderr.split("offprof.errors.")[-1]


def test_gives_torch_a_device_of_the_profile() -> None:
    script = """
        from offprof.virtual_gpu import open_virtual_gpu
        gpu = open_virtual_gpu("a100-40gb")
        import torch
        print(torch.cuda.device_count(), torch.cuda.get_device_name(), gpu.state().profile)
    """
    assert output_of(script) == "1 NVIDIA A100-SXM4-40GB a100-40gb\n"


def test_limits_the_memory() -> None:
    script = """
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu(memory_limit_bytes=1 << 30)
        import torch
        print(torch.cuda.mem_get_info()[0])
    """
    assert int(output_of(script)) == 1 << 30


def test_counts_time_and_launches() -> None:
    script = """
        from offprof.virtual_gpu import open_virtual_gpu
        gpu = open_virtual_gpu()
        import torch
        before = gpu.state()
        torch.ones(1000, device="cuda").add_(1)
        torch.cuda.synchronize()
        after = gpu.state()
        print(after.launches - before.launches, after.host_time_ns > before.host_time_ns)
    """
    assert output_of(script) == "2 True\n"


def test_operators_that_make_views_take_their_time_whoever_observes_them() -> None:
    script = """
        from offprof.virtual_gpu import open_virtual_gpu
        gpu = open_virtual_gpu()
        import torch
        gpu.observe_operators()

        def host_ns(make, parts):
            before = gpu.state().host_time_ns
            assert len(make(parts)) == parts
            return gpu.state().host_time_ns - before

        for requires_grad in (False, True):
            whole = torch.empty(4096, 4, device="cuda", requires_grad=requires_grad)
            for make in (whole.chunk, lambda parts: whole.split(4096 // parts)):
                times = []
                for parts in (1, 64, 8, 2, 1024, 64):
                    time = host_ns(make, parts)
                    with torch.autograd.profiler.profile():  # nothing is hidden from it
                        assert host_ns(make, parts) == time
                    times.append(time)
                assert times[4] > 10 * times[1] == 10 * times[5] > 10 * times[2] > 0
    """
    output_of(script)


def test_keeps_caches_of_compiled_kernels_apart() -> None:
    script = """
        import os
        os.environ["XDG_CACHE_HOME"] = "/caches"
        os.environ["TRITON_CACHE_DIR"] = "/users/own"
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu("l4")
        print(os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_CACHE_DIR"])
    """
    assert output_of(script) == "/caches/offprof/l4/inductor /caches/offprof/l4/triton\n"


def test_refuses_after_torch() -> None:
    error = error_of("""
        import torch
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
    """)
    assert error.startswith("offprof.errors.UnavailableError: LibTorch (libc10.so) is already loaded")
    assert "before the first `import torch`" in error


def test_refuses_beside_a_real_cuda_library() -> None:
    library = ROOT / ".deps" / "libtorch" / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
    error = error_of(f"""
        import ctypes
        ctypes.CDLL({str(library)!r})
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
    """)
    assert error.startswith("offprof.errors.UnavailableError: another libcudart.so.13 was loaded")
    assert str(library) in error


def test_refuses_a_second_time() -> None:
    error = error_of("""
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
        open_virtual_gpu("l4")
    """)
    assert error.startswith("offprof.errors.InputError: the virtual GPU is already open in this process, as h200")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("open_virtual_gpu('h2000')", "InputError: no GPU profile is named 'h2000'"),
        ("open_virtual_gpu('/nonexistent.json')", "InputError: cannot"),
        ("open_virtual_gpu(memory_limit_bytes=0)", "InputError: the memory limit is not positive: 0"),
        ("open_virtual_gpu(libraries='/nonexistent')", "UnavailableError: cannot open /nonexistent/"),
    ],
)
def test_rejects_wrong_arguments(call: str, message: str) -> None:
    error = error_of(f"from offprof.virtual_gpu import open_virtual_gpu\n{call}\n")
    assert error.removeprefix("offprof.errors.").startswith(message)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("__version__ = '2.9.1+cu130'\ncuda = '13.0'", f"is another version than {BUILT_FOR}"),
        ("__version__ = '2.11.0+cpu'\ncuda = None\nhip = None", "was built without CUDA"),
        ("__version__ = '2.11.0+cu126'\ncuda = '12.6'\nhip = None", "was built for CUDA 12.6"),
        ("__version__ = '2.11.0+rocm6'\ncuda = None\nhip = '6.4'", "was built for ROCm"),
    ],
)
def test_refuses_another_torch(tmp_path: Path, version: str, message: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "version.py").write_text(version)
    error = error_of(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
    """)
    assert error.startswith("offprof.errors.UnavailableError")
    assert message in error
    assert f"-m pip install torch=={BUILT_FOR}" in error


@pytest.mark.parametrize(
    ("version", "hint"),
    [("2.9.1", "another that offprof supports: 2.11, "), (OTHER_SUPPORTED, "build offprof for torch")],
)
def test_says_how_to_get_an_offprof_for_another_torch(tmp_path: Path, version: str, hint: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '{version}'\ncuda = '13.0'")
    error = error_of(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
    """)
    assert hint in error


def test_refuses_a_python_without_torch() -> None:
    error = error_of("""
        import sys
        sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry and "libtorch" not in entry]
        from offprof.virtual_gpu import open_virtual_gpu
        open_virtual_gpu()
    """)
    assert error.startswith("offprof.errors.UnavailableError: this Python has no torch")
