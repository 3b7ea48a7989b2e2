"""Runs a program of this folder with the Python code of `offprof export` in its loop.

    with_export.py --code exported.py --program llama.py [--outcome OUTCOME] [ARGUMENT...]

Calls the functions of the code with the program's `model` before its first forward. What the loop of the program does
before its first `backward` is put into a `with` statement over the context that the code returns, if any. Writes
PyTorch's own peaks of the last step on a GPU to OUTCOME.
"""

import argparse
import inspect
import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from with_offloading import Observer, edited

# Functions of exported code, in the order in which they are called.
FUNCTIONS = ("checkpoint_selectively", "checkpoint_modules", "offload_activations")
CONTEXT = "__exported__"


class Exported:
    """The exported code of a file. A call applies it to a model, once, and returns the context for forward."""

    def __init__(self, code: Path) -> None:
        self.names: dict[str, Any] = {"__name__": "exported"}
        exec(compile(code.read_text(encoding="utf-8"), str(code), "exec"), self.names)
        self.context: AbstractContextManager[Any] | None = None

    def __call__(self, model: torch.nn.Module) -> AbstractContextManager[Any]:
        if self.context is None:
            self.context = nullcontext()
            for function in [self.names[name] for name in FUNCTIONS if name in self.names]:
                result = function(model) if inspect.signature(function).parameters else function()
                self.context = result if hasattr(result, "__enter__") else self.context
        return self.context


def main() -> None:
    """Runs the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--outcome", type=Path)
    known, rest = parser.parse_known_args()
    sys.argv = [str(known.program), *rest]
    sys.path.insert(0, str(known.program.parent))
    observer = Observer() if known.outcome else None
    names = {"__name__": "__main__", "__file__": str(known.program), CONTEXT: Exported(known.code)}
    exec(edited(known.program, f"{CONTEXT}(model)"), names)
    if observer:
        known.outcome.write_text(json.dumps(observer.peaks), encoding="utf-8")


if __name__ == "__main__":
    main()
