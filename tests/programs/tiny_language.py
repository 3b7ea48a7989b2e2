"""Language models and texts that several programs share: small enough to train for a few seconds on one processor."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 500


def llama(layers: int = 2) -> LlamaForCausalLM:
    """Returns a Llama with random weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=64,
            intermediate_size=172,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=256,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def gpt2(layers: int = 2) -> GPT2LMHeadModel:
    """Returns a GPT-2 with random weights and the usual dropout of 10 %."""
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_embd=64, n_layer=layers, n_head=4, n_positions=256, pad_token_id=0)
    )


def word_tokenizer() -> PreTrainedTokenizerFast:
    """Returns a tokenizer of the words `w3` to `w498`, separated by spaces."""
    special = ["<pad>", "<s>", "</s>"]
    words = [*special, *(f"w{number}" for number in range(len(special), VOCABULARY - 1)), "<unk>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def sentence(words: int) -> str:
    """Returns a text of random words."""
    return " ".join(f"w{number}" for number in torch.randint(3, VOCABULARY - 1, (words,)).tolist())
