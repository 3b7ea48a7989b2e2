"""Trains a small Mixtral: each token goes to two of four experts.

Exercises: shapes that depend on values, which the routing computes. A GPU without values needs to assume them.
"""

import settings
import torch
from transformers import MixtralConfig, MixtralForCausalLM
from transformers.models.mixtral.modeling_mixtral import MixtralBlockSparseTop2MLP

EXPERTS, CHOICES, VOCABULARY = 4, 2, 512


def main() -> None:
    parser = settings.parser(__doc__)
    parser.add_argument("--show-experts", action="store_true", help="print the tokens of each expert in each call")
    arguments = settings.start(parser)
    config = MixtralConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=EXPERTS,
        num_experts_per_tok=CHOICES,
        use_cache=False,
    )
    model = MixtralForCausalLM(config).to(arguments.device)
    if arguments.show_experts:
        for name, module in model.named_modules():
            if isinstance(module, MixtralBlockSparseTop2MLP):
                module.register_forward_pre_hook(lambda _, inputs, name=name: print(name, inputs[0].shape[0]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(arguments.steps):
        tokens = torch.randint(0, VOCABULARY, (2, 33), device=arguments.device)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
