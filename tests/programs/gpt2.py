"""Trains a small GPT-2 of transformers with dropout.

Exercises: random masks of dropout, tied weights, a key-value cache that each forward creates, `item()` in each step.
"""

import settings
import tiny_language
import torch


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    model = tiny_language.gpt2().to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    running = 0.0
    for _ in range(arguments.steps):
        tokens = torch.randint(0, tiny_language.VOCABULARY, (4, 64)).to(arguments.device)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        running += loss.item()
        optimizer.step()
        optimizer.zero_grad()
    print(f"mean loss {running / arguments.steps:.6f}")


if __name__ == "__main__":
    main()
