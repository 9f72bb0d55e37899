"""The architecture of the base models: about 1 M parameters, short convolutions and attention in turn."""

import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedTokenizerFast


def create(tokenizer: PreTrainedTokenizerFast, seed: int) -> Lfm2ForCausalLM:
    """A randomly initialised fp32 model for the tokenizer's vocabulary; 4 MiB of weights."""
    torch.manual_seed(seed)
    config = Lfm2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=464,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        layer_types=["conv", "full_attention"] * 2,
        block_auto_adjust_ff_dim=False,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.06,  # 0.02 is for wide models; look-ups start later with it.
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Lfm2ForCausalLM(config)
