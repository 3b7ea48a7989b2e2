"""Activation offloading in the trainers of transformers and TRL."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from offprof.activations import OffloadActivations
from offprof.activations_report import OffloadingReport


class OffloadCallback(TrainerCallback):
    """Offloads the activations of each training step of a `Trainer`.

    ::

        trainer = Trainer(..., callbacks=[OffloadCallback("policy.json")])
        trainer.train()
        print(callback.report())

    A step covers all micro-batches until the optimizer steps. Evaluation is left alone.
    """

    def __init__(self, *policy: Any, **settings: Any) -> None:
        """Takes the arguments of OffloadActivations, and raises its errors."""
        self._offloading = OffloadActivations(*policy, **settings)

    def report(self) -> OffloadingReport:
        """Returns the figures of the steps so far."""
        return self._offloading.report()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Leaves the context if an earlier training failed within it."""
        self._leave()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Enters the context."""
        self._leave()
        self._offloading.__enter__()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Leaves the context: forward and backward of all micro-batches are over."""
        self._leave()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Leaves the context if training ended within a step."""
        self._leave()

    def _leave(self) -> None:
        self._offloading.__exit__(None, None, None)
