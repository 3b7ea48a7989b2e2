"""Tests of `cmake --install` and of the Debian package: install_test.py BUILD CMAKE CPACK."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, CMAKE, CPACK = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
MODEL = Path(__file__).resolve().parents[1] / "models" / "qwen2.pt"
HAS_ENGINE = (BUILD / "liboffprof_engine.so").exists()
MOST_PACKAGE_BYTES = 5_000_000
# Libraries that bare Debian 12 has.
BARE_PACKAGES = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}


def output_of(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


class InstallTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def installed(self) -> Path:
        """Installs the build, moves the installation, and returns its new place."""
        output_of(CMAKE, "--install", BUILD, "--prefix", self.folder / "old")
        (self.folder / "old").rename(self.folder / "new")
        return self.folder / "new"

    def test_program_runs_from_another_prefix(self) -> None:
        program = self.installed() / "bin" / "offprof"
        self.assertIn("compiler", output_of(program, "--version", "--verbose"))
        self.assertIn("tensors", json.loads(output_of(program, "inspect", MODEL, "--format", "json")))

    @unittest.skipUnless(HAS_ENGINE, "a build without the engine")
    def test_engine_is_found_in_another_prefix(self) -> None:
        prefix = self.installed()
        report = json.loads(output_of(prefix / "bin" / "offprof", "doctor", "--format", "json"))
        details = {finding["name"]: finding["detail"] for finding in report["findings"]}
        self.assertEqual(details["engine"], str(prefix / "lib" / "offprof" / "liboffprof_engine.so"))
        self.assertEqual(details["virtual GPU"], str(prefix / "lib" / "offprof" / "virtual_gpu"))

    def test_no_file_looks_for_libraries_in_the_build(self) -> None:
        for file in self.installed().rglob("*"):
            if file.is_file() and (file.suffix == ".so" or ".so." in file.name or file.parent.name == "bin"):
                self.assertNotIn(str(BUILD), output_of("readelf", "-d", file), file)

    def test_share_has_man_pages_completions_profiles_and_licences(self) -> None:
        share = self.installed() / "share"
        for name in (
            "man/man1/offprof.1.gz",
            "man/man1/offprof-tune.1.gz",
            "bash-completion/completions/offprof",
            "zsh/vendor-completions/_offprof",
            "fish/vendor_completions.d/offprof.fish",
            "offprof/profiles/h200.json",
            "doc/offprof/changelog.gz",
        ):
            self.assertTrue((share / name).is_file(), name)
        licences = (share / "doc/offprof/copyright").read_text()
        for library in ("CLI11", "fmt", "nlohmann_json", "pugixml", "RapidJSON", "tomlplusplus", "xxHash"):
            self.assertIn(f"--- {library} ---", licences)

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_man_pages_render_without_warnings(self) -> None:
        for page in (self.installed() / "share/man/man1").iterdir():
            result = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True)
            self.assertEqual(result.stderr, "", page)
            self.assertIn("EXIT STATUS", re.sub(".\b", "", result.stdout))

    @unittest.skipIf(HAS_ENGINE or not shutil.which("dpkg-shlibdeps"), "the package is of the small flavour")
    def test_debian_package_needs_only_what_bare_debian_has(self) -> None:
        output_of(CPACK, "--config", BUILD / "CPackConfig.cmake", "-B", self.folder)
        (package,) = self.folder.glob("offprof_*.deb")
        self.assertLess(package.stat().st_size, MOST_PACKAGE_BYTES)
        depends = output_of("dpkg-deb", "--field", package, "Depends")
        self.assertLessEqual({part.split()[0] for part in depends.split(", ")}, BARE_PACKAGES)
        output_of("dpkg-deb", "--extract", package, self.folder / "root")
        self.assertIn("offprof", output_of(self.folder / "root/usr/bin/offprof", "--version"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
