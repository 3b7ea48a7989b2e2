"""Trains a model of blocks with the module names of Llama. Tests import the model."""

import torch
from torch import nn


class Attention(nn.Module):
    """Attention of one head over the sequence."""

    def __init__(self, width):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.o_proj = nn.Linear(width, width)

    def forward(self, hidden):
        scores = self.q_proj(hidden) @ self.k_proj(hidden).transpose(1, 2)
        return self.o_proj(scores.softmax(dim=-1) @ self.v_proj(hidden))


class Block(nn.Module):
    """Attention and a perceptron, each with a residual."""

    def __init__(self, width):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attn = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, hidden):
        hidden = hidden + self.self_attn(self.input_layernorm(hidden))
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Blocks(nn.Module):
    """Two blocks and an output head."""

    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(2))
        self.lm_head = nn.Linear(width, 10)

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return self.lm_head(hidden)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Blocks().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(1000):
        loss = model(torch.randn(4, 32, 64, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
