"""Adapts torch.compile to a virtual GPU, which launches kernels and computes nothing.

- Constants of a graph are folded on the CPU: inductor evaluates them on the device and reads the values.
- What only a benchmark on a GPU can decide is refused by name, or noted where the choice is inductor's own.
- Kernels are compiled in the process itself: its worker processes would have to open a virtual GPU, too.

Nothing is imported: each part is adapted when torch imports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .errors import InputError
from .import_hooks import after_import

_PADDING_NOTE = (
    "torch.compile decided by a benchmark whether to pad matrix products (pad_mm): on a GPU it may decide "
    "otherwise, which changes memory; torch._inductor.config.shape_padding = False leaves no choice"
)


def adapt_torch_compile(note: Callable[[str], None]) -> None:
    """Adapts torch.compile in this process, before torch is imported.

    Args:
        note: called with a note about figures that a GPU's benchmark would decide.
    """
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    after_import("torch._inductor.fx_passes.joint_graph", _fold_constants_on_cpu)
    after_import("torch._inductor.fx_passes.pad_mm", lambda module: _note_padding(module, note))
    after_import("torch._inductor.compile_fx", _refuse_benchmarks)


def _fold_constants_on_cpu(joint_graph: Any) -> None:
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        """Creates tensors on the CPU, whatever device is asked for."""

        def __torch_function__(
            self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("device") is not None:
                kwargs["device"] = "cpu"
            return func(*args, **kwargs)

    folder = joint_graph.UniformValueConstantFolder
    run = folder.run

    def run_on_cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        with OnCpu():
            return run(self, *args, **kwargs)

    folder.run = run_on_cpu


def _note_padding(pad_mm: Any, note: Callable[[str], None]) -> None:
    get_do_bench = pad_mm.get_do_bench  # called for each product that is benchmarked

    def get_do_bench_and_note() -> Any:
        note(_PADDING_NOTE)
        return get_do_bench()

    pad_mm.get_do_bench = get_do_bench_and_note


def _refuse_benchmarks(compile_module: Any) -> None:
    compile_fx = compile_module.compile_fx  # calls itself with the settings of torch.compile's mode

    def checked_compile_fx(model: Any, example_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if any(getattr(value, "is_cuda", False) for value in example_inputs):
            _refuse_settings(compile_module.config)
        return compile_fx(model, example_inputs, *args, **kwargs)

    compile_module.compile_fx = checked_compile_fx


def _refuse_settings(config: Any) -> None:
    """Raises InputError for settings of inductor that a virtual GPU cannot follow."""
    if config.max_autotune or config.max_autotune_gemm or config.max_autotune_pointwise:
        raise InputError(
            "torch.compile with max-autotune chooses kernels by their measured times, and a virtual GPU has none",
            "Use mode='default', or set TORCHINDUCTOR_MAX_AUTOTUNE=0.",
        )
    if config.triton.cudagraphs:
        raise InputError(
            "torch.compile with CUDA graphs (mode='reduce-overhead') needs stream capture, which a virtual GPU "
            "does not have",
            "Use mode='default', or set TORCHINDUCTOR_CUDAGRAPHS=0.",
        )
