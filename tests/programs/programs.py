"""The programs of this folder with the command lines that the tests use."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Program:
    """A script with arguments.

    `needs` are the libraries that it imports beside torch, which scripts/setup.sh --programs installs. `trl_fails`
    are kinds of devices on which the program raises RuntimeError with TRL's own OffloadActivations, and so under its
    rules.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    trl_fails: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Returns the path of the script."""
        return FOLDER / self.script

    def missing(self) -> list[str]:
        """Returns the libraries that this Python lacks."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


PROGRAMS = (
    Program("mlp", "mlp.py"),
    Program("cnn", "cnn.py"),
    Program("resnet", "resnet.py", needs=("torchvision",)),
    Program("llama", "llama.py", needs=("transformers",)),
    Program("gpt2", "gpt2.py", needs=("transformers",)),
    Program("hf_trainer", "hf_trainer.py", needs=("transformers", "accelerate")),
    Program("sft_trainer", "sft_trainer.py", needs=("transformers", "trl", "datasets")),
    Program("dpo_trainer", "dpo_trainer.py", needs=("transformers", "trl", "datasets")),
    Program("lora", "lora.py", needs=("transformers", "peft")),
    Program("accelerate_loop", "accelerate_loop.py", needs=("accelerate",)),
    Program("lightning_trainer", "lightning_trainer.py", needs=("lightning",)),
    Program("mixed_precision", "mixed_precision.py"),
    Program("skipped_steps", "mixed_precision.py", ("--overflow-every", "5")),
    Program("fused_adamw", "optimizers.py", ("--implementation", "fused")),
    Program("foreach_adamw", "optimizers.py", ("--implementation", "foreach")),
    Program("checkpointing", "checkpointing.py"),
    Program("reentrant_checkpointing", "checkpointing.py", ("--reentrant",)),
    Program("forked_workers", "data_workers.py", ("--start-method", "fork")),
    Program("spawned_workers", "data_workers.py", ("--start-method", "spawn")),
    Program("custom_function", "custom_function.py"),
    Program("save_on_cpu", "save_on_cpu.py"),
    Program("functional", "functional.py"),
    Program("gan", "gan.py"),
    # Backward unpacks saved tensors again.
    Program("gradient_penalty", "gan.py", ("--gradient-penalty",), trl_fails=("host", "virtual")),
    Program("varying_lengths", "varying_lengths.py"),
    Program("compiled_blocks", "compiled_blocks.py", needs=("triton",)),
    Program("forks_and_threads", "forks_and_threads.py"),
    Program("reads_values", "reads_values.py"),
    Program("packed_sequences", "packed_sequences.py"),
)


def program(name: str) -> Program:
    """Returns the program with this name. Raises KeyError if there is none."""
    return {each.name: each for each in PROGRAMS}[name]
