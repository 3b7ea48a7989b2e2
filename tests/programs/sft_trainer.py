"""Fine-tunes a small Llama with TRL's SFTTrainer.

Exercises: TRL, a tokenizer and a data set made in the script, gradient accumulation; with --activation-offloading
also TRL's own offloading of saved tensors.
"""

import tempfile

import settings
import tiny_language
from datasets import Dataset
from trl import SFTConfig, SFTTrainer


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--activation-offloading", action="store_true", help="offload saved tensors as TRL does")
    arguments = settings.start(parser)
    texts = Dataset.from_dict({"text": [tiny_language.sentence(63) for _ in range(64)]})
    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            model=tiny_language.llama(),
            args=SFTConfig(
                output_dir=folder,
                per_device_train_batch_size=2,
                gradient_accumulation_steps=2,
                max_steps=arguments.steps,
                max_length=64,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                seed=arguments.seed,
                bf16=False,
                gradient_checkpointing=False,
                activation_offloading=arguments.activation_offloading,
                use_cpu=arguments.device == "cpu",
            ),
            train_dataset=texts,
            processing_class=tiny_language.word_tokenizer(),
        )
        result = trainer.train()
    print(f"mean loss {result.training_loss:.6f}")


if __name__ == "__main__":
    main()
