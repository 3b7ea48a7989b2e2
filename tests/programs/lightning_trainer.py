"""Trains an autoencoder with the Trainer of Lightning.

Exercises: Lightning's loop, which calls forward and backward in a closure of the optimizer's step.
"""

import logging

import lightning
import settings
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(lightning.LightningModule):
    """Compresses 128 features to 16 and restores them."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 128))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        (features,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(features)), features)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    data = TensorDataset(torch.randn(64 * arguments.steps, 128))
    trainer = lightning.Trainer(
        accelerator="cpu" if arguments.device == "cpu" else "gpu",
        devices=1,
        max_steps=arguments.steps,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Autoencoder(), DataLoader(data, batch_size=64, shuffle=True))
    print(f"loss {trainer.callback_metrics['loss'].item():.6f}")


if __name__ == "__main__":
    main()
