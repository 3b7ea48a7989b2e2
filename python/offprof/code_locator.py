"""Finds the module and the source line of a program that are running."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import CodeType, FrameType

import torch

# A module's call runs in this function, whose `self` is the module.
_CALL = torch.nn.Module._call_impl.__code__
# Files whose lines say nothing about the program: those of torch and of this package.
_SKIPPED_FOLDERS = tuple(os.path.dirname(os.path.abspath(file)) + os.sep for file in (torch.__file__, __file__))
# Code that Python froze, and code that torch.fx generated.
_SKIPPED_NAMES = ("<frozen ", "<eval_with_key>")


class CodeLocator:
    """Finds the module and the line that the calling thread is running.

    A line is looked up once for each instruction, and files are classified once, so that `locate` costs little
    more than the walk up the stack.
    """

    def __init__(self) -> None:
        """Knows no module."""
        self._paths: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._is_skipped: dict[str, bool] = {}
        # By the code's id and the instruction. The code is kept, so that its id stays its own.
        self._lines: dict[tuple[int, int], tuple[str, CodeType]] = {}

    def learn(self, roots: list[torch.nn.Module]) -> None:
        """Learns the paths of all modules below the roots. A module in several places has the first path."""
        for root in roots:
            if root in self._paths:
                continue
            for path, module in root.named_modules():
                self._paths.setdefault(module, path)

    def locate(self) -> tuple[str, str]:
        """Returns the path of the innermost module whose call is running, and the innermost line, `FILE:LINE`.

        Lines of torch do not count, unless there are no others. Both are empty if they are unknown.
        """
        module = line = None
        innermost = frame = sys._getframe().f_back
        while frame is not None and (module is None or line is None):
            code = frame.f_code
            if code is _CALL:
                if module is None:
                    module = self._paths.get(frame.f_locals["self"])
            elif line is None and not self._skips(code.co_filename):
                line = self._line_of(frame)
            frame = frame.f_back
        if line is None and innermost is not None:
            line = self._line_of(innermost)
        return module or "", line or ""

    def _skips(self, file: str) -> bool:
        skips = self._is_skipped.get(file)
        if skips is None:
            skips = file.startswith(_SKIPPED_NAMES) or os.path.abspath(file).startswith(_SKIPPED_FOLDERS)
            self._is_skipped[file] = skips
        return skips

    def _line_of(self, frame: FrameType) -> str:
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        known = self._lines.get(key)
        if known is None:
            known = self._lines[key] = (f"{_short(code.co_filename)}:{frame.f_lineno}", code)
        return known[0]


def call_site() -> str:
    """Returns the whole path and the line, `FILE:LINE`, of the innermost frame of this thread that is neither torch's nor
    this package's; `backward` if there is none on a thread of autograd, else `the end of the program`."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_SKIPPED_FOLDERS):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    is_main = threading.current_thread() is threading.main_thread()
    return "the end of the program" if is_main else "backward"


def _short(file: str) -> str:
    """Returns a file's path below the innermost folder that Python imports from; else the whole path."""
    if file.startswith("<"):
        return file
    path = os.path.abspath(file)
    for candidate in (path, os.path.realpath(path)):
        folders = [os.path.abspath(entry).rstrip(os.sep) + os.sep for entry in sys.path]
        around = [folder for folder in folders if candidate.startswith(folder)]
        if around:
            return candidate[len(max(around, key=len)) :]
    return path
