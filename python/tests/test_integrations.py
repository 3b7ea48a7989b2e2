"""The callbacks for training libraries, in the real trainers. Left out where a library is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import offprof
import pytest

offprof.open_device("host")  # before the first tensor

import torch  # noqa: E402
from torch import nn  # noqa: E402

STEPS = 6


class Regression(nn.Module):
    """Fits squares. Its loss is made in `forward`, as transformers' models do."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.layers(x) - labels).square().mean()}


def examples() -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(256, 8, generator=generator)
    return [{"x": row, "labels": row.square()} for row in inputs]


def tensors_of_a_step(report: offprof.OffloadingReport) -> int:
    return sum(entry["tensors"] for entry in report.ledger)


def assert_offloads(report: offprof.OffloadingReport) -> None:
    assert report.measured is not None
    assert report.measured["d2h_bytes"] > 0
    assert report.steps >= STEPS - 3


def train_with_transformers(folder: Path, micro_batches: int, *callbacks: Any) -> list[torch.Tensor]:
    transformers = pytest.importorskip("transformers")
    model = Regression()
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=16,
        gradient_accumulation_steps=micro_batches,
        max_steps=STEPS,
        report_to=[],
        disable_tqdm=True,
        save_strategy="no",
        use_cpu=True,
    )
    transformers.Trainer(model, arguments, train_dataset=examples(), callbacks=list(callbacks)).train()
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_trainer_of_transformers(micro_batches: int, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from offprof.integrations.transformers import OffloadCallback

    callback = OffloadCallback("offload", prefetch="64KiB")
    trained = train_with_transformers(tmp_path, micro_batches, callback)
    plain = train_with_transformers(tmp_path, micro_batches)
    assert all(torch.equal(a, b) for a, b in zip(trained, plain, strict=True))
    assert_offloads(callback.report())
    assert tensors_of_a_step(callback.report()) % micro_batches == 0


def test_trainer_of_transformers_after_a_failed_training(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from offprof.integrations.transformers import OffloadCallback

    callback = OffloadCallback("offload")
    with pytest.raises(KeyError):
        fail_with_transformers(tmp_path, callback)
    train_with_transformers(tmp_path, 1, callback)
    assert_offloads(callback.report())


def fail_with_transformers(folder: Path, callback: Any) -> None:
    transformers = pytest.importorskip("transformers")

    class Failing(transformers.Trainer):  # type: ignore[name-defined]
        def compute_loss(self, *_: Any, **__: Any) -> Any:
            raise KeyError("loss")

    arguments = transformers.TrainingArguments(str(folder), max_steps=1, report_to=[], disable_tqdm=True, use_cpu=True)
    Failing(Regression(), arguments, train_dataset=examples(), callbacks=[callback]).train()


def test_trainer_of_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    from offprof.integrations.lightning import OffloadCallback

    class Module(lightning.LightningModule):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = Regression()

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def train(*callbacks: Any) -> list[torch.Tensor]:
        module = Module()
        trainer = lightning.Trainer(
            max_steps=STEPS,
            accelerator="cpu",
            callbacks=list(callbacks),
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=str(tmp_path),
        )
        trainer.fit(module, torch.utils.data.DataLoader(examples(), batch_size=16))
        return [parameter.detach().clone() for parameter in module.parameters()]

    callback = OffloadCallback("offload")
    assert all(torch.equal(a, b) for a, b in zip(train(callback), train(), strict=True))
    assert_offloads(callback.report())
