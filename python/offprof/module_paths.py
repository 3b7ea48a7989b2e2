"""Finds the module of a program that is running."""

from __future__ import annotations

import sys
import weakref
from types import FrameType

import torch

# A module's call runs in this function, whose `self` is the module.
_CALL = torch.nn.Module._call_impl.__code__


class ModulePaths:
    """Paths of the modules below root modules, such as `layers.0.attention`."""

    def __init__(self) -> None:
        """Knows no module."""
        self._paths: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()

    def learn(self, roots: list[torch.nn.Module]) -> None:
        """Learns the paths of all modules below the roots. A module in several places has the first path."""
        for root in roots:
            if root in self._paths:
                continue
            for path, module in root.named_modules():
                self._paths.setdefault(module, path)

    def current(self) -> str:
        """Returns the path of the innermost module whose call is running on this thread; empty: none is known."""
        frame: FrameType | None = sys._getframe()  # a thread of backward may have no other
        while frame is not None:
            if frame.f_code is _CALL:
                path = self._paths.get(frame.f_locals["self"])
                if path is not None:
                    return path
            frame = frame.f_back
        return ""
