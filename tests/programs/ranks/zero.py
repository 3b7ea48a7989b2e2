"""DeepSpeed's ZeRO in bfloat16. Stage 3 gathers the parameters of each module around its forward and its backward."""

import blocks
import deepspeed
import torch
import torch.distributed as dist

options = blocks.arguments(stage=int)
device = blocks.start()
model = blocks.Model()
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    config={
        "train_micro_batch_size_per_gpu": blocks.BATCH,
        "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": options.stage or 3,
            "reduce_bucket_size": 1_000_000,
            "stage3_param_persistence_threshold": 300,
            "stage3_prefetch_bucket_size": 100_000,
            "stage3_max_live_parameters": 1_000_000,
            "stage3_max_reuse_distance": 1_000_000,
        },
    },
)
for _ in range(options.steps):
    tokens = torch.randint(blocks.VOCABULARY, (blocks.BATCH, blocks.LENGTH), device=device)
    loss = torch.nn.functional.cross_entropy(engine(tokens).flatten(0, 1), tokens.flatten())
    engine.backward(loss)
    engine.step()
dist.destroy_process_group()
