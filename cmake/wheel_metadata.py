"""The requirements of the wheel: scikit-build-core asks for them (pyproject.toml).

A wheel works with the minor version of torch that it is built against. The sources have a range.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_SUPPORTED = "torch>=2.11,<2.16"
_PRINT_VERSION = "import importlib.metadata; print(importlib.metadata.version('torch'), end='')"


def _torch_version() -> str:
    """Returns the version of torch of this Python; empty if it has none.

    pip hides the packages of the environment that it builds a wheel for with the two variables.
    """
    hidden = ("PYTHONPATH", "PYTHONNOUSERSITE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = subprocess.run(
        [sys.executable, "-c", _PRINT_VERSION], capture_output=True, text=True, check=False, env=environment
    )
    return ended.stdout if ended.returncode == 0 else ""


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of the project's table that are not in the file."""
    del settings, project
    version = _torch_version()
    return {"dependencies": [f"torch=={'.'.join(version.split('.')[:2])}.*" if version else _SUPPORTED]}


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the members that a wheel may have otherwise than the sources."""
    del settings
    return {"dependencies": True}
