"""Runs a program of this folder with `offprof.OffloadActivations` in its loop, as a user would write it.

    with_offloading.py OUTCOME SETTINGS PROGRAM [ARGUMENT...]

SETTINGS are the arguments of OffloadActivations as a JSON object, or `null`: nothing is offloaded. What the loop of the
program does before its first `backward` is put into a `with` statement; a Trainer of transformers gets the callback.
Writes to OUTCOME: the report, PyTorch's own peaks of the last step on a GPU, and a digest of each step's gradients.
"""

import ast
import hashlib
import importlib
import json
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

CONTEXT = "__offloading__"


def calls_backward(statement: ast.stmt) -> bool:
    """Returns True for `x.backward(...)`."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == "backward"
    )


class LoopEditor(ast.NodeTransformer):
    """Puts the statements of a loop before `backward` into a `with` statement over the expression `context`."""

    def __init__(self, context: str) -> None:
        self.context = context
        self.edits = 0

    def visit_For(self, loop: ast.For) -> ast.For:
        self.generic_visit(loop)
        backward = next((i for i, each in enumerate(loop.body) if calls_backward(each)), 0)
        if backward > 0:
            context = ast.withitem(context_expr=ast.parse(self.context, mode="eval").body)
            loop.body = [ast.With(items=[context], body=loop.body[:backward]), *loop.body[backward:]]
            self.edits += 1
        return loop


def edited(program: Path, context: str) -> CodeType:
    """Returns the program with `with` statements over the expression `context`. Exits if there is no loop to edit."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    editor = LoopEditor(context)
    tree = ast.fix_missing_locations(editor.visit(tree))
    if editor.edits == 0:
        sys.exit(f"{program.name} has no loop that calls backward")
    return compile(tree, str(program), "exec")


def add_callback(callback: Any) -> None:
    """Gives the callback to every Trainer of transformers that is created from now on."""
    from transformers import Trainer

    create = Trainer.__init__

    def create_with_callback(self: Any, *arguments: Any, **named: Any) -> None:
        create(self, *arguments, **named)
        self.add_callback(callback)

    Trainer.__init__ = create_with_callback


class Observer:
    """Observes each optimizer step: gradients before it, PyTorch's peaks after it."""

    def __init__(self) -> None:
        self.gradients: list[str] = []
        self.peaks: dict[str, int] = {}
        register_optimizer_step_pre_hook(self.take_gradients)
        register_optimizer_step_post_hook(self.take_peaks)

    def take_gradients(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        digest = hashlib.sha256()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and not parameter.is_cuda:
                    digest.update(parameter.grad.contiguous().view(torch.uint8).numpy().tobytes())
        self.gradients.append(digest.hexdigest())

    def take_peaks(self, *_: Any) -> None:
        if not torch.cuda.is_available():
            return
        stats = torch.cuda.memory_stats()
        self.peaks = {
            "device_peak_bytes": stats["requested_bytes.all.peak"],
            "device_allocated_peak_bytes": stats["allocated_bytes.all.peak"],
        }
        torch.cuda.reset_peak_memory_stats()


def main() -> None:
    """Runs the program."""
    outcome, settings, program = Path(sys.argv[1]).resolve(), json.loads(sys.argv[2]), Path(sys.argv[3])
    sys.argv = sys.argv[3:]
    sys.path.insert(0, str(program.parent))
    observer = Observer()
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(program)}
    source = compile(program.read_text(encoding="utf-8"), str(program), "exec")
    report: Any = None
    if settings is None:
        exec(source, names)
    else:
        # By name: the checks of these files run without the package.
        if "Trainer(" in program.read_text(encoding="utf-8"):
            context = importlib.import_module("offprof.integrations.transformers").OffloadCallback(**settings)
            add_callback(context)
        else:
            context = importlib.import_module("offprof").OffloadActivations(**settings)
            source = edited(program, CONTEXT)
        exec(source, {**names, CONTEXT: context})
        report = context.report()
    result = {"report": report and vars(report), "peaks": observer.peaks, "gradients": observer.gradients}
    outcome.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
