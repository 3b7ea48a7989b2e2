"""Activation offloading in Lightning's trainer."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from offprof.activations import OffloadActivations
from offprof.activations_report import OffloadingReport


class OffloadCallback(Callback):
    """Offloads the activations of each training batch: `Trainer(callbacks=[OffloadCallback("policy.json")])`."""

    def __init__(self, *policy: Any, **settings: Any) -> None:
        """Takes the arguments of OffloadActivations, and raises its errors."""
        self._offloading = OffloadActivations(*policy, **settings)

    def report(self) -> OffloadingReport:
        """Returns the figures of the steps so far."""
        return self._offloading.report()

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:
        """Enters the context."""
        self._offloading.__enter__()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """Leaves the context."""
        self._offloading.__exit__(None, None, None)

    def on_exception(self, *_: Any, **__: Any) -> None:
        """Leaves the context."""
        self._offloading.__exit__(None, None, None)
