"""`python -m trainer check-model --in question.json --out modules.json`: whether the files of a base model are whole,
which of its modules a LoRA would train, and a LoRA of them to try a policy server with.

Invariant: no weights are read, only headers; modules are those of the model as transformers builds it, never a
checkpoint's names (experts that are listed one by one there are one parameter of the model); a bad input is refused
(trainer/refusal.py)."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

from pydantic import Field

from trainer.inputs import Closed, read_input
from trainer.refusal import refused

POINTER = b"version https://git-lfs.github.com/spec/"
SIZE_BYTES = 8
"""The length of a safetensors file's header, which stands before it."""
MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors file, by its format."""


class BadModel(ValueError):
    """The folder holds no model that can be loaded; the message names the file, what is wrong and the fix."""


class Blank(Closed):
    """An adapter of this rank that changes nothing, and the folder that is made for it."""

    rank: int = Field(ge=1)
    output_dir: str = Field(min_length=1)


class Question(Closed):
    """`model`: the base model's folder; `target_modules` as in a job; `blank`: an adapter to be made of them."""

    model: str = Field(min_length=1)
    target_modules: list[str]
    blank: Blank | None = None


class LoraModules(NamedTuple):
    """`found`: the modules that a LoRA trains, by their whole names. `unknown`: wanted names that no module has.
    `choices`: names that may be wanted."""

    found: dict[str, Any]
    unknown: list[str]
    choices: list[str]


def main(argv: list[str]) -> int:
    """Writes {"modules": [{"name", "in", "out"}], "unknown", "choices"}. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="trainer check-model", description="Look at a base model's files and modules."
    )
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help='{"model", "target_modules"}')
    parser.add_argument("--out", required=True, metavar="FILE", help="the modules, made anew")
    options = parser.parse_args(argv)
    try:
        asked = read_input(Question, Path(options.source), name="--in", refusal=BadModel)
        check_files(Path(asked.model))
        found, unknown, choices = lora_modules(empty_model(asked.model), asked.target_modules)
    except BadModel as error:
        return refused("check-model", error)
    if asked.blank and not unknown:
        write_blank(asked.blank, base=asked.model, modules=found)
    modules = [{"name": name, "in": one.in_features, "out": one.out_features} for name, one in found.items()]
    Path(options.out).write_text(json.dumps({"modules": modules, "unknown": unknown, "choices": choices}) + "\n")
    return 0


def write_blank(blank: Blank, *, base: str, modules: dict[str, Any]) -> None:
    import torch

    from trainer.peft_folder import write_peft_folder

    def zeros(*shape: int) -> Any:
        return torch.zeros(shape, dtype=torch.bfloat16, device="cpu")

    factors = {
        name: (zeros(blank.rank, one.in_features), zeros(one.out_features, blank.rank)) for name, one in modules.items()
    }
    write_peft_folder(Path(blank.output_dir), base=base, rank=blank.rank, factors=factors)


def check_files(folder: Path) -> None:
    """Raises BadModel for a file that was not downloaded, or not to its end."""
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        with file.open("rb") as handle:
            begin = handle.read(len(POINTER))
            if begin == POINTER:
                raise BadModel(
                    f"{file} is a git-lfs pointer and not the file itself; run `git lfs pull` in {folder}, "
                    "or download the model anew"
                )
            if file.suffix == ".safetensors" and (problem := _damage(file, begin)):
                raise BadModel(f"{file} {problem}; download it anew")


def _damage(file: Path, begin: bytes) -> str | None:
    """What is wrong with a safetensors file."""
    size = file.stat().st_size
    header = int.from_bytes(begin[:SIZE_BYTES], "little")
    if header > MAX_HEADER_BYTES:
        return f"is no safetensors file: it begins with {begin!r}"
    whole = SIZE_BYTES + header
    if header and whole <= size:
        try:
            with file.open("rb") as handle:
                handle.seek(SIZE_BYTES)
                tensors = json.loads(handle.read(header))
            ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
        except (ValueError, LookupError, TypeError, AttributeError):
            return "is damaged: its header is not that of a safetensors file"
        whole += max(ends, default=0)
    return None if header and size == whole else f"is not whole: it has {size:,} bytes, and by its header {whole:,}"


def empty_model(folder: str) -> Any:
    """The model with the weights left out, as transformers builds it before it reads them. Raises BadModel."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    try:
        config = AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)
    except Exception as error:  # an architecture may refuse its configuration in any way
        raise BadModel(
            f"{folder}/config.json: {error}; name a causal language model that transformers knows"
        ) from error


def lora_modules(model: Any, wanted: list[str]) -> LoraModules:
    """The rule of what a LoRA can train: linear modules, by a name or the end of one."""
    import torch

    linear = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    found: dict[str, Any] = {}
    unknown = []
    for one in wanted:
        matches = {name: module for name, module in linear.items() if f".{name}".endswith(f".{one}")}
        found |= matches
        unknown += [] if matches else [one]
    return LoraModules(found, unknown, sorted({name.rsplit(".", 1)[-1] for name in linear} - {"lm_head"}))
