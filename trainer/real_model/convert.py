"""From a GGUF file to a transformers folder. Invariant: the folder holds plain float32 weights and says nothing of
the quantization that they had, so whatever loads models from folders loads this one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

os.environ.setdefault("TQDM_DISABLE", "1")


def convert(gguf: Path, folder: Path) -> None:
    """Writes weights, configuration, tokenizer and chat template of a GGUF file into a folder."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    source = {"gguf_file": gguf.name}
    read = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
    # A model that was read from GGUF counts as quantized and does not save: its weights go into one that never was.
    config = plain_config(read.config)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
    if _pre_tokenizer(gguf) == "smollm":
        split_digits(tokenizer)
    tokenizer.save_pretrained(folder)


def plain_config(config: Any) -> Any:
    """The configuration without what tells of a quantization."""
    fields = {name: value for name, value in config.to_dict().items() if name != "quantization_config"}
    return AutoConfig.for_model(**fields)


def split_digits(tokenizer: Any) -> None:
    """GGUF names its pre-tokenizer by a word, which transformers passes over: `smollm` takes digits one by one before
    anything else. Without it, white space in front of a number becomes other tokens than in training."""
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _pre_tokenizer(gguf: Path) -> str | None:
    from gguf import GGUFReader

    field = GGUFReader(gguf).get_field("tokenizer.ggml.pre")
    return None if field is None else field.contents()
