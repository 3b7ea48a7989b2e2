#!/usr/bin/env python3
"""Compares the dependencies that folders declare with their includes.

Each folder of sources is a library, and its CMakeLists.txt names the folders that it depends on: `offprof_layer(... DEPENDS ...)`.
This program reports

  - an include from a folder that is not declared, and a declared folder that nothing is included from;
  - folders that depend on each other in a circle, or on a module above them;
  - a folder without TORCH that includes LibTorch or depends on a folder with TORCH;
  - a folder that depends on a SHARED one, which is opened at run time;
  - a folder with more than 40 C++ files.

Tests (*_test.cpp) may include anything that their program links.

  scripts/check_layers.py [--torch-free]

  --torch-free   prints the headers that include no LibTorch, one a line, and checks nothing

Exit status 1 if there is anything to report.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# From the bottom up. `simulator` may use of `engine` only SIMULATOR_MAY_USE.
MODULES = ["traces", "engine", "simulator", "profiler", "cli"]
SIMULATOR_MAY_USE = ["engine/scheduler"]
MOST_FILES = 40
LAYER = re.compile(r"^offprof_layer\((.*?)\)$", re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(rf'^#include "((?:{"|".join(MODULES)})/[^"]+)"', re.MULTILINE)
TORCH_INCLUDE = re.compile(r"^#include <(?:torch|ATen|c10|caffe2)/", re.MULTILINE)
KEYWORDS = {"SOURCES", "DEPENDS", "LIBS", "SHARED", "TORCH", "COLD"}


class Layer:
    """A folder with its declaration: the folders in DEPENDS, and whether it is declared TORCH and SHARED."""

    def __init__(self, folder, declaration):
        """Reads a declaration: the arguments of offprof_layer."""
        self.folder = folder
        words = re.sub(r"#.*", "", declaration).split()
        self.torch = "TORCH" in words
        self.shared = "SHARED" in words
        self.depends = set()
        if "DEPENDS" in words:
            for word in words[words.index("DEPENDS") + 1 :]:
                if word in KEYWORDS:
                    break
                self.depends.add(word)


def tracked(*patterns):
    """Returns the files of the repository that match, new ones included."""
    listing = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
            "--",
            *patterns,
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [Path(line) for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


def read_layers():
    """Returns the layers by folder."""
    layers = {}
    for path in tracked("*CMakeLists.txt"):
        for declaration in LAYER.findall((ROOT / path).read_text()):
            layers[str(path.parent)] = Layer(str(path.parent), declaration)
    return layers


def sources():
    """The C++ files of the modules without their tests, by folder."""
    folders: dict[str, list[Path]] = {}
    for path in tracked("*.h", "*.cpp"):
        if path.parts[0] in MODULES and not path.name.endswith("_test.cpp"):
            folders.setdefault(str(path.parent), []).append(path)
    return folders


def circles(layers):
    """Each folder that depends on itself by way of others, with that way."""
    done = set()

    def visit(folder, way):
        if folder in way:
            yield [*way[way.index(folder) :], folder]
            return
        if folder in done:
            return
        for other in sorted(layers[folder].depends & layers.keys()):
            yield from visit(other, [*way, folder])
        done.add(folder)

    for folder in sorted(layers):
        yield from visit(folder, [])


def check_layer(layer, files, layers):
    """Yields a sentence for each rule that the layer breaks."""
    used: dict[str, Path] = {}
    for path in files:
        text = (ROOT / path).read_text()
        if not layer.torch and TORCH_INCLUDE.search(text):
            yield f"{path}: includes LibTorch, but {layer.folder} is not declared TORCH"
        for include in INCLUDE.findall(text):
            used.setdefault(str(Path(include).parent), path)
    used.pop(layer.folder, None)
    for folder in sorted(used.keys() - layer.depends):
        yield f"{used[folder]}: includes from {folder}, which {layer.folder}/CMakeLists.txt does not declare in DEPENDS"
    for folder in sorted(layer.depends - used.keys()):
        yield f"{layer.folder}/CMakeLists.txt: declares {folder} in DEPENDS, but includes nothing from it"
    module = layer.folder.split("/")[0]
    for folder in sorted(layer.depends):
        if folder not in layers:
            yield f"{layer.folder}/CMakeLists.txt: {folder} is not a layer"
            continue
        if MODULES.index(folder.split("/")[0]) > MODULES.index(module):
            yield f"{layer.folder}/CMakeLists.txt: {folder} is above {module}"
        if module == "simulator" and folder.startswith("engine/") and folder not in SIMULATOR_MAY_USE:
            yield f"{layer.folder}/CMakeLists.txt: the simulator may use only {', '.join(SIMULATOR_MAY_USE)} of the engine"
        if layers[folder].shared:
            yield f"{layer.folder}/CMakeLists.txt: {folder} is opened at run time, so that nothing may depend on it"
        if layers[folder].torch and not layer.torch:
            yield f"{layer.folder}/CMakeLists.txt: depends on {folder}, which needs LibTorch, but is not declared TORCH"


def check():
    """Yields a sentence for each rule that a folder breaks."""
    layers = read_layers()
    folders = sources()
    for folder, files in sorted(folders.items()):
        if folder in layers:
            yield from check_layer(layers[folder], files, layers)
    for circle in circles(layers):
        yield "folders depend on each other in a cycle: " + " -> ".join(circle)
    counts: dict[str, int] = {}
    for path in tracked("*.h", "*.cpp"):
        counts[str(path.parent)] = counts.get(str(path.parent), 0) + 1
    for folder, count in sorted(counts.items()):
        if count > MOST_FILES:
            yield f"{folder}: {count} C++ files exceed the limit of {MOST_FILES}"


def torch_free_headers():
    """Returns the headers of layers without LibTorch."""
    layers = read_layers()
    return [
        path
        for folder, files in sources().items()
        for path in files
        if path.suffix == ".h" and folder in layers and not layers[folder].torch
    ]


def main():
    """Runs the command. Returns the exit status."""
    if sys.argv[1:] == ["--torch-free"]:
        print(*torch_free_headers(), sep="\n")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    complaints = list(check())
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
