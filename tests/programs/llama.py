"""Trains a small Llama of transformers in a plain loop.

Exercises: transformers, grouped-query attention, rotary embeddings, the model's own loss.
"""

import settings
import tiny_language
import torch


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = tiny_language.llama().to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(arguments.steps):
        tokens = torch.randint(0, tiny_language.VOCABULARY, (4, 64)).to(arguments.device)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
