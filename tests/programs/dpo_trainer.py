"""Aligns a small Llama with TRL's DPOTrainer.

Exercises: TRL with a frozen reference model beside the trained one, two forward passes in a step.
"""

import tempfile

import settings
import tiny_language
from datasets import Dataset
from trl import DPOConfig, DPOTrainer


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    preferences = Dataset.from_dict(
        {
            "prompt": [tiny_language.sentence(16) for _ in range(64)],
            "chosen": [" " + tiny_language.sentence(24) for _ in range(64)],
            "rejected": [" " + tiny_language.sentence(24) for _ in range(64)],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = DPOTrainer(
            model=tiny_language.llama(),
            args=DPOConfig(
                output_dir=folder,
                per_device_train_batch_size=2,
                max_steps=arguments.steps,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=arguments.seed,
                bf16=False,
                gradient_checkpointing=False,
                use_cpu=arguments.device == "cpu",
            ),
            train_dataset=preferences,
            processing_class=tiny_language.word_tokenizer(),
        )
        result = trainer.train()
    print(f"mean loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
