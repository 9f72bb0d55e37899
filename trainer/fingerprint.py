"""`python -m trainer fingerprint --in question.json --out fingerprint.json`: log-probs of some token ids under a base
model, by which a policy server that does not say what it serves proves that it serves this one.

Invariant: the same folder gives the same ids, and log-probs up to round-off; the model is computed in the precision of
its files, as servers do, and takes their memory once."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

from pydantic import Field

from trainer.inputs import Closed, read_input
from trainer.refusal import refused

COUNT = 64
STRIDE = 7919
"""A prime: the ids lie all over the vocabulary, and say nothing that any model has been trained to say."""


class BadModel(ValueError):
    """The folder holds no model that can be loaded; the message says why."""


class Question(Closed):
    """`model`: the base model's folder."""

    model: str = Field(min_length=1)


def main(argv: list[str]) -> int:
    """Writes {"ids", "logprobs"}: of each id but the first, given those before it. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="trainer fingerprint", description="Log-probs of some ids under a model.")
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help='{"model"}')
    parser.add_argument("--out", required=True, metavar="FILE", help="the fingerprint, made anew")
    options = parser.parse_args(argv)
    try:
        asked = read_input(Question, Path(options.source), name="--in", refusal=BadModel)
        found = fingerprint(asked.model)
    except BadModel as error:
        return refused("fingerprint", error)
    Path(options.out).write_text(json.dumps(found) + "\n", encoding="utf-8")
    return 0


def fingerprint(folder: str) -> dict[str, Any]:
    """Raises BadModel."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    except (OSError, ValueError) as error:
        raise BadModel(f"base model {folder}: {error}") from error
    # Special tokens stand at an end of the vocabulary, and what no tokenizer gives behind it.
    known = model.config.get_text_config().vocab_size // 2
    ids = [STRIDE * (n + 1) % known for n in range(COUNT)]
    with torch.inference_mode():
        logps = model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return {"ids": ids, "logprobs": [logps[n, token].item() for n, token in enumerate(ids[1:])]}
