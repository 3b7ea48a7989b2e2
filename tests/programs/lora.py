"""Fine-tunes a small Llama with LoRA adapters of PEFT.

Exercises: frozen parameters, adapters that wrap linear layers, an optimizer of few parameters.
"""

import settings
import tiny_language
import torch
from peft import LoraConfig, get_peft_model


def main() -> None:
    arguments = settings.start(settings.parser(__doc__))
    adapters = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.05, target_modules=["q_proj", "v_proj"])
    model = get_peft_model(tiny_language.llama(), adapters).to(arguments.device).train()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    for _ in range(arguments.steps):
        tokens = torch.randint(0, tiny_language.VOCABULARY, (4, 64)).to(arguments.device)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
