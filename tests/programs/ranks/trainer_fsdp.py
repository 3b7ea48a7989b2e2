"""A small Llama under the Trainer of transformers, whose accelerator shards it: FSDP2, or FSDP1 with --fsdp1."""

import argparse
import os
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, default_data_collator

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--fsdp1", action="store_true")
options = parser.parse_args()
os.environ["FSDP_VERSION"] = "1" if options.fsdp1 else "2"
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=344,
        num_hidden_layers=4,
        num_attention_heads=4,
        use_cache=False,
    )
)
tokens = torch.randint(3, 1024, (64, 64))
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=2,
            max_steps=options.steps,
            fsdp="full_shard auto_wrap",
            fsdp_config={"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
            bf16=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in tokens],
        data_collator=default_data_collator,
    )
    trainer.train()
