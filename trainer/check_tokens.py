"""`python -m trainer check-tokens --in texts.json --out tokens.json`: how much of some texts a base model's tokenizer
does not know.

Invariant: nothing but `tokenizers` is loaded (torch and transformers take seconds); a tokenizer without an unknown
token, or a model folder without tokenizer.json, has nothing that it does not know; a bad input is refused
(trainer/refusal.py)."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import Field
from tokenizers import Tokenizer

from trainer.inputs import Closed, read_input
from trainer.refusal import refused

WORDS = 10


class BadTexts(ValueError):
    """The texts cannot be looked at; the message names the field, the value and the fix."""


class Texts(Closed):
    """`model`: the base model's folder."""

    model: str = Field(min_length=1)
    texts: list[str]


def main(argv: list[str]) -> int:
    """Counts and writes the counts. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="trainer check-tokens", description="Count a tokenizer's unknown tokens.")
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help='{"model", "texts"}')
    parser.add_argument("--out", required=True, metavar="FILE", help="the counts, made anew")
    options = parser.parse_args(argv)
    try:
        given = read_input(Texts, Path(options.source), name="--in", refusal=BadTexts)
        counts = unknown_tokens(Path(given.model), given.texts)
    except BadTexts as error:
        return refused("check-tokens", error)
    out = Path(options.out)
    aside = out.with_name(out.name + ".partial")
    try:
        aside.write_text(json.dumps(counts) + "\n", encoding="utf-8")
        os.replace(aside, out)
    finally:
        aside.unlink(missing_ok=True)
    return 0


def unknown_tokens(model: Path, texts: list[str]) -> dict[str, Any]:
    """{"tokens", "unknown", "words": [{"word", "count"}]}: the words are the most frequent of the unknown ones. Raises
    BadTexts."""
    file = model / "tokenizer.json"
    if not file.is_file():
        return {"tokens": 0, "unknown": 0, "words": []}
    try:
        tokenizer = Tokenizer.from_file(str(file))
        unknown = _unknown_id(tokenizer, json.loads(file.read_bytes())["model"])
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    except Exception as error:  # whatever the library's Rust side raises
        raise BadTexts(f"{file}: {error}; name a base model with a whole tokenizer.json") from error
    words = Counter(
        text[start:end]
        for text, encoding in zip(texts, encodings, strict=True)
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if token == unknown
    )
    return {
        "tokens": sum(len(encoding.ids) for encoding in encodings),
        "unknown": words.total(),
        "words": [{"word": word, "count": count} for word, count in words.most_common(WORDS)],
    }


def _unknown_id(tokenizer: Tokenizer, model: dict[str, Any]) -> int | None:
    """Unigram models name it by its place in the vocabulary, the others by its text."""
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    token = model.get("unk_token")
    return None if token is None else tokenizer.token_to_id(token)
