"""Trains a small Llama with the Trainer of transformers.

Exercises: Trainer with its accelerator, logging of each step, clipping of gradients, a learning-rate schedule.
"""

import tempfile

import settings
import tiny_language
import torch
from transformers import Trainer, TrainingArguments, default_data_collator


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    tokens = torch.randint(3, tiny_language.VOCABULARY, (64, 64))
    examples = [{"input_ids": row, "labels": row, "attention_mask": torch.ones_like(row)} for row in tokens]
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=tiny_language.llama(),
            args=TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=4,
                max_steps=arguments.steps,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=arguments.seed,
                use_cpu=arguments.device == "cpu",
            ),
            train_dataset=examples,
            data_collator=default_data_collator,
        )
        result = trainer.train()
    print(f"mean loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
