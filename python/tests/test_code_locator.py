"""`CodeLocator`: the module and the line that are running."""

from __future__ import annotations

import _thread
import os
import queue
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from offprof.code_locator import CodeLocator

TORCH_FILE = os.path.join(os.path.dirname(torch.__file__), "nn", "functional.py")


class Noting(torch.nn.Module):
    """A module that notes where it runs."""

    def __init__(self, locator: CodeLocator) -> None:
        super().__init__()
        self.locator = locator
        self.places: list[tuple[str, str]] = []

    def forward(self, value: Any) -> Any:
        self.places.append(self.locator.locate())
        return value


def function_in(file: str, text: str, **names: Any) -> Any:
    """Returns the function `f` that `text` defines, as if it were in that file."""
    exec(compile(text, file, "exec"), names)
    return names["f"]


def line_here() -> int:
    """Returns the line of the caller."""
    frame = sys._getframe().f_back
    assert isinstance(frame, FrameType)
    return frame.f_lineno


def test_finds_the_innermost_module_and_the_line_in_it() -> None:
    locator = CodeLocator()
    noting = Noting(locator)
    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Sequential(noting))
    locator.learn([model])
    model(1)
    line = Noting.forward.__code__.co_firstlineno + 1
    assert noting.places == [("1.0", f"test_code_locator.py:{line}")]


def test_each_instruction_of_a_line_s_code_has_its_own_line() -> None:
    locator = CodeLocator()
    first = (locator.locate()[1], line_here())
    second = (locator.locate()[1], line_here())
    for text, line in (first, second):
        assert text == f"test_code_locator.py:{line}"


def test_lines_of_torch_and_of_generated_code_do_not_count() -> None:
    locator = CodeLocator()
    for file in (TORCH_FILE, "<eval_with_key>.7", "<frozen runpy>"):
        through = function_in(file, "def f(call):\n    return call()\n")
        assert through(locator.locate) == ("", f"test_code_locator.py:{line_here()}")


def test_a_stack_of_torch_alone_has_its_innermost_line() -> None:
    places: queue.Queue[tuple[str, str]] = queue.Queue()
    text = "def f():\n\n    places.put(locate())\n"
    _thread.start_new_thread(function_in(TORCH_FILE, text, places=places, locate=CodeLocator().locate), ())
    assert places.get(timeout=60) == ("", "torch/nn/functional.py:3")


def test_files_are_relative_to_the_innermost_folder_of_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "venv" / "site-packages"
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(library)])
    for file, short in (
        (library / "package" / "model.py", "package/model.py"),
        (tmp_path / "lib" / "train.py", "lib/train.py"),
        (Path("/elsewhere/train.py"), "/elsewhere/train.py"),
    ):
        assert function_in(str(file), "def f(call):\n    return call()\n")(CodeLocator().locate) == ("", f"{short}:2")


def test_a_script_named_relative_to_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert function_in("train.py", "def f(call):\n    return call()\n")(CodeLocator().locate)[1] == "train.py:2"
