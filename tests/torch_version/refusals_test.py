"""Tests of cmake/offprof_torch_version.cmake: it finds LibTorch and CUDA, and refuses what offprof cannot be built with."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "offprof_torch_version.cmake"


class RefusalsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def libtorch(self, version: str, *libraries: str) -> None:
        """Makes files as a LibTorch of this version has them, with the CUDA headers of its wheel."""
        major, minor, patch = version.split(".")
        self.write(
            "torch/include/torch/headeronly/version.h",
            f"#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n"
            f"#define TORCH_VERSION_PATCH {patch}\n",
        )
        for library in ("torch_cpu", *libraries):
            self.write(f"torch/lib/lib{library}.so")
        for header in ("cuda_runtime_api.h", "cupti.h"):
            self.write(f"nvidia/cu13/include/{header}")

    def cuda_toolkit(self) -> Path:
        """Makes files as a CUDA Toolkit has them, and returns its folder."""
        self.write("toolkit/bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
        (self.folder / "toolkit/bin/nvcc").chmod(0o755)
        self.write("toolkit/include/cuda_runtime.h")
        self.write("toolkit/include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n")
        self.write("toolkit/lib64/libcudart.so")
        self.write("toolkit/extras/CUPTI/include/cupti.h")
        self.write("toolkit/extras/CUPTI/lib64/libcupti.so")
        return self.folder / "toolkit"

    def write(self, path: str, text: str = "") -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def configure(self, **options: object) -> subprocess.CompletedProcess[str]:
        """Runs the script with variables of CMake."""
        settings = [f"-D{name}={value}" for name, value in options.items()]
        command = ["cmake", *settings, "-P", str(SCRIPT)]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)

    def assert_accepted(self, **options: object) -> None:
        done = self.configure(**options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_refused(self, message: str, **options: object) -> None:
        done = self.configure(**options)
        self.assertNotEqual(done.returncode, 0)
        error = " ".join(done.stderr.split())
        self.assertIn(message, error)
        self.assertIn("scripts/setup.sh --torch 2.11 installs one", error)

    def test_accepts_the_oldest_and_the_newest_version(self) -> None:
        for version in ("2.11.0", "2.15.3"):
            self.libtorch(version, "torch_cuda")
            self.assert_accepted(OFFPROF_LIBTORCH_DIR=self.folder)

    def test_refuses_other_versions(self) -> None:
        for version in ("2.10.0", "2.16.0", "2.1.1", "3.11.0"):
            self.libtorch(version, "torch_cuda")
            self.assert_refused(f"is version {version}, which", OFFPROF_LIBTORCH_DIR=self.folder)

    def test_refuses_a_torch_without_cuda(self) -> None:
        self.libtorch("2.11.0")
        self.assert_refused("is built without CUDA", OFFPROF_LIBTORCH_DIR=self.folder)

    def test_refuses_a_torch_for_rocm(self) -> None:
        self.libtorch("2.11.0", "torch_hip")
        self.assert_refused("is built for ROCm", OFFPROF_LIBTORCH_DIR=self.folder)

    def test_refuses_a_torch_without_the_headers_of_cuda_13(self) -> None:
        self.libtorch("2.11.0", "torch_cuda")
        (self.folder / "nvidia/cu13/include/cupti.h").unlink()
        self.assert_refused("nvidia-cuda-cupti are missing", OFFPROF_LIBTORCH_DIR=self.folder)

    def test_takes_an_archive_of_libtorch_and_the_cuda_toolkit(self) -> None:
        self.libtorch("2.11.0", "torch_cuda")
        (self.folder / "torch").rename(self.folder / "libtorch")
        (self.folder / "nvidia/cu13/include/cupti.h").unlink()
        self.write(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(probe CXX)\n"
            f'include("{SCRIPT}")\nmessage(STATUS "headers: ${{cuda_include_dirs}}")\n',
        )
        toolkit = self.cuda_toolkit()
        for place in (
            f"-DTorch_DIR={self.folder}/libtorch/share/cmake/Torch",
            f"-DCMAKE_PREFIX_PATH={self.folder}/libtorch",
            f"-DOFFPROF_LIBTORCH_DIR={self.folder}/libtorch",
        ):
            command = ["cmake", "-S", ".", "-B", "build", "--fresh", place, f"-DCUDAToolkit_ROOT={toolkit}"]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"LibTorch 2.11.0 in {self.folder}/libtorch; CUDA and CUPTI of the CUDA Toolkit", done.stdout)
            self.assertIn(f"headers: {toolkit}/include;{toolkit}/extras/CUPTI/include", done.stdout)

    def test_refuses_a_folder_without_torch(self) -> None:
        self.assert_refused("There is no LibTorch in", OFFPROF_LIBTORCH_DIR=self.folder / "nothing")

    def test_refuses_a_python_without_torch(self) -> None:
        self.write("python", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        (self.folder / "python").chmod(0o755)
        self.assert_refused("There is no torch in the Python", OFFPROF_TORCH_PYTHON=self.folder / "python")

    def test_refuses_an_unknown_version_by_name(self) -> None:
        for version in ("2.16", "newest"):
            self.assert_refused(f"OFFPROF_TORCH_VERSION is '{version}'", OFFPROF_TORCH_VERSION=version)

    def test_refuses_a_folder_with_another_version_than_the_one_asked_for(self) -> None:
        self.libtorch("2.11.0", "torch_cuda")
        self.assert_refused(
            "OFFPROF_TORCH_VERSION is 2.15, but", OFFPROF_LIBTORCH_DIR=self.folder, OFFPROF_TORCH_VERSION="2.15"
        )

    def test_takes_the_folder_of_the_version_that_is_asked_for(self) -> None:
        self.folder = self.folder / "source"
        source, self.folder = self.folder, self.folder / ".deps" / "libtorch-2.15"
        self.libtorch("2.15.0", "torch_cuda")
        self.folder = source
        self.assert_accepted(OFFPROF_TORCH_VERSION="2.15.0")


if __name__ == "__main__":
    unittest.main()
