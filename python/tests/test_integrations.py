"""The callbacks for training libraries, in the real trainers. Left out where a library is missing."""

from __future__ import annotations

import contextlib
import importlib.util
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


def torchtune_recipe(context: Any) -> Any:
    """Returns a recipe of torchtune with a small model, which offloads with the context."""
    llama3 = pytest.importorskip("torchtune.models.llama3").llama3
    loss = pytest.importorskip("torchtune.modules.loss").CEWithChunkedOutputLoss
    torch.manual_seed(1)
    # torchtune allows only its command `tune` to import recipes.
    found = importlib.util.find_spec("torchtune")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parents[1] / "recipes" / "full_finetune_single_device.py"
    spec = importlib.util.spec_from_file_location("full_finetune_single_device", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recipe = object.__new__(module.FullFinetuneRecipeSingleDevice)
    recipe._model = llama3(
        vocab_size=64, num_layers=2, num_heads=2, num_kv_heads=1, embed_dim=32, max_seq_len=32, intermediate_dim=64
    )
    recipe._loss_fn = loss(num_output_chunks=2)
    recipe._model.set_num_output_chunks(2)
    recipe.ignore_labels_cache = torch.full((4, 1), -100)
    recipe.activations_handling_ctx = context
    return recipe


def train_with_torchtune(context: Any) -> list[torch.Tensor]:
    recipe = torchtune_recipe(context)
    optimizer = torch.optim.AdamW(recipe._model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(2)
    for _ in range(STEPS):
        tokens = torch.randint(64, (4, 32), generator=generator)
        recipe._loss_step({"tokens": tokens, "labels": tokens.clone()}).backward()
        optimizer.step()
        optimizer.zero_grad()
    return [parameter.detach().clone() for parameter in recipe._model.parameters()]


def test_recipe_of_torchtune() -> None:
    config = pytest.importorskip("torchtune.config")
    recipe_config = pytest.importorskip("omegaconf").OmegaConf.create(
        {
            "activation_offloading": {
                "_component_": "offprof.integrations.torchtune.OffloadActivations",
                "threshold": "1KiB",
                "rules": [{"module": "output", "placement": "device"}],
            }
        }
    )
    context = config.instantiate(recipe_config.activation_offloading)
    trained, plain = train_with_torchtune(context), train_with_torchtune(contextlib.nullcontext())
    assert all(torch.equal(a, b) for a, b in zip(trained, plain, strict=True))
    assert_offloads(context.report())
    assert any(entry["reason"] == "rule" for entry in context.report().ledger)


def test_context_of_torchtunes_function() -> None:
    from offprof.integrations.torchtune import get_act_offloading_ctx_manager

    assert isinstance(get_act_offloading_ctx_manager(Regression(), True, "trl"), offprof.OffloadActivations)
    with get_act_offloading_ctx_manager(Regression(), False, "trl") as context:
        assert context is None
