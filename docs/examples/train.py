"""Trains a small GPT on random tokens: an ordinary training script that knows nothing of offprof."""

import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, VOCABULARY = 8, 512, 8, 8192
BATCH, LENGTH, STEPS = 8, 512, 1000

device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.attention_norm(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


model = nn.Sequential(
    nn.Embedding(VOCABULARY, WIDTH),
    *[Block() for _ in range(LAYERS)],
    nn.LayerNorm(WIDTH),
    nn.Linear(WIDTH, VOCABULARY),
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(STEPS):
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 0:
        print("step", step, "loss", loss.item())
