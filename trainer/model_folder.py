"""What a base model's folder holds: which model that is, whether its files are whole, which modules a LoRA would train,
what its tokenizer does not know, and by which log-probs a policy server proves that it serves this model.

Invariants: nothing heavy is imported before a function needs it (torch and transformers take seconds); modules are
those of the model as transformers builds it, never a checkpoint's names (experts that are listed one by one there are
one parameter of the model); a bad input is refused (trainer/command.py)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

from pydantic import Field

from trainer.command import Closed, question_main, tell_progress, write_json


class BadModel(ValueError):
    """The folder holds no model that can be loaded; the message names the file, what is wrong and the fix."""


class Question(Closed):
    """`model`: the base model's folder."""

    model: str = Field(min_length=1)


CHUNK_BYTES = 1 << 22

File = list[str | int]
"""Name, inode, size, times of the last change of content and of anything (which no program sets back)."""


def base_id_main(argv: list[str]) -> int:
    """`python -m trainer base-id`: answers {"id"}; tells progress in bytes."""
    return question_main(
        argv,
        lambda question: {"id": base_id(Path(question.model), tell_progress)},
        program="base-id",
        description="Tell which base model a folder holds.",
        model=Question,
        refusal=BadModel,
    )


def base_id(model: Path, progress: Callable[[int, int], None] | None = None) -> str:
    """`<folder>@<hash of all files>`: another base has another id, also in a folder of the same name. Files that have
    not changed since they were hashed are not read again where CAMPAIGN_HOME names a home, which keeps the hashes.
    `progress` is told how many bytes of how many are hashed. Raises BadModel."""
    if not (model / "config.json").is_file():
        fix = 'make one with "make base-model", or name the folder of one'
        raise BadModel(f"base model {model}: no model there (config.json is missing); {fix}")
    folder = model.resolve()
    files = _files(folder)
    known = _known_hashes()
    digest = known.get(str(folder), {}).get(json.dumps(files))
    if digest is None:
        digest = _digest(folder, files, progress)
        # Others may write at once: what one of them forgets is hashed once more.
        with contextlib.suppress(KeyError, OSError):
            write_json(_hashes_file(), {**known, str(folder): {json.dumps(files): digest}})
    return f"{os.path.basename(os.path.abspath(model))}@{digest[:12]}"


def _files(folder: Path) -> list[File]:
    # A folder of a model hub's cache holds links to its files.
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    stats = [(name, (folder / name).stat()) for name in names]
    return [[name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for name, stat in stats]


def _digest(folder: Path, files: list[File], progress: Callable[[int, int], None] | None) -> str:
    whole, done = hashlib.sha256(), 0
    total = sum(int(size) for _, _, size, *_ in files)
    for name, *_ in files:
        whole.update(f"{name}\n".encode())
        with (folder / str(name)).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                whole.update(chunk)
                done += len(chunk)
                if progress:
                    progress(done, total)
    return whole.hexdigest()


def _known_hashes() -> dict[str, dict[str, str]]:
    """By folder and its files; nothing where they can't be read."""
    try:
        known = json.loads(_hashes_file().read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(one, dict) for one in known.values()) else {}


def _hashes_file() -> Path:
    """Raises KeyError where no home is named."""
    return Path(os.environ["CAMPAIGN_HOME"]) / "base-ids.json"


POINTER = b"version https://git-lfs.github.com/spec/"
SIZE_BYTES = 8
"""The length of a safetensors file's header, which stands before it."""
MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors file, by its format."""


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


class Blank(Closed):
    """An adapter of this rank that changes nothing, and the folder that is made for it."""

    rank: int = Field(ge=1)
    output_dir: str = Field(min_length=1)


class ModulesQuestion(Question):
    """`target_modules` as in a job; `blank`: an adapter to be made of them."""

    target_modules: list[str]
    blank: Blank | None = None


class LoraModules(NamedTuple):
    """`found`: the modules that a LoRA trains, by their whole names. `unknown`: wanted names that no module has.
    `choices`: names that may be wanted."""

    found: dict[str, Any]
    unknown: list[str]
    choices: list[str]


def check_model_main(argv: list[str]) -> int:
    """`python -m trainer check-model`: answers {"modules": [{"name", "in", "out"}], "unknown", "choices"}, from headers
    alone, and writes a blank adapter to try a policy server with."""

    def answer(question: ModulesQuestion) -> dict[str, Any]:
        check_files(Path(question.model))
        found, unknown, choices = lora_modules(empty_model(question.model), question.target_modules)
        if question.blank and not unknown:
            write_blank(question.blank, base=question.model, modules=found)
        modules = [{"name": name, "in": one.in_features, "out": one.out_features} for name, one in found.items()]
        return {"modules": modules, "unknown": unknown, "choices": choices}

    return question_main(
        argv,
        answer,
        program="check-model",
        description="Look at a base model's files and modules.",
        model=ModulesQuestion,
        refusal=BadModel,
    )


def write_blank(blank: Blank, *, base: str, modules: dict[str, Any]) -> None:
    import torch

    from trainer.peft_folder import write_peft_folder

    def zeros(*shape: int) -> Any:
        return torch.zeros(shape, dtype=torch.bfloat16, device="cpu")

    factors = {
        name: (zeros(blank.rank, one.in_features), zeros(one.out_features, blank.rank)) for name, one in modules.items()
    }
    write_peft_folder(Path(blank.output_dir), base=base, rank=blank.rank, factors=factors)


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


UNKNOWN_WORDS = 10
"""So many of the most frequent ones are told."""


class Texts(Question):
    texts: list[str]


def check_tokens_main(argv: list[str]) -> int:
    """`python -m trainer check-tokens`: answers how much of some texts a base model's tokenizer does not know."""
    return question_main(
        argv,
        lambda given: unknown_tokens(Path(given.model), given.texts),
        program="check-tokens",
        description="Count a tokenizer's unknown tokens.",
        model=Texts,
        refusal=BadModel,
    )


def unknown_tokens(model: Path, texts: list[str]) -> dict[str, Any]:
    """{"tokens", "unknown", "words": [{"word", "count"}]}: the words are the most frequent of the unknown ones. Nothing
    is unknown to a tokenizer without an unknown token, or without a tokenizer.json. Raises BadModel."""
    from tokenizers import Tokenizer

    file = model / "tokenizer.json"
    if not file.is_file():
        return {"tokens": 0, "unknown": 0, "words": []}
    try:
        tokenizer = Tokenizer.from_file(str(file))
        unknown = _unknown_id(tokenizer, json.loads(file.read_bytes())["model"])
        encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    except Exception as error:  # whatever the library's Rust side raises
        raise BadModel(f"{file}: {error}; name a base model with a whole tokenizer.json") from error
    words = Counter(
        text[start:end]
        for text, encoding in zip(texts, encodings, strict=True)
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if token == unknown
    )
    return {
        "tokens": sum(len(encoding.ids) for encoding in encodings),
        "unknown": words.total(),
        "words": [{"word": word, "count": count} for word, count in words.most_common(UNKNOWN_WORDS)],
    }


def _unknown_id(tokenizer: Any, model: dict[str, Any]) -> int | None:
    """Unigram models name it by its place in the vocabulary, the others by its text."""
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    token = model.get("unk_token")
    return None if token is None else tokenizer.token_to_id(token)


FINGERPRINT_IDS = 64
STRIDE = 7919
"""A prime: the ids lie all over the vocabulary, and say nothing that any model has been trained to say."""


def fingerprint_main(argv: list[str]) -> int:
    """`python -m trainer fingerprint`: answers {"ids", "logprobs"}, of each id but the first, given those before it."""
    return question_main(
        argv,
        lambda question: fingerprint(question.model),
        program="fingerprint",
        description="Log-probs of some ids under a model.",
        model=Question,
        refusal=BadModel,
    )


def fingerprint(folder: str) -> dict[str, Any]:
    """The same folder gives the same ids, and log-probs up to round-off. The model is computed in the precision of its
    files, as servers do, and takes their memory once. Raises BadModel."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    except (OSError, ValueError) as error:
        raise BadModel(f"base model {folder}: {error}") from error
    # Special tokens stand at an end of the vocabulary, and what no tokenizer gives behind it.
    known = model.config.get_text_config().vocab_size // 2
    ids = [STRIDE * (n + 1) % known for n in range(FINGERPRINT_IDS)]
    with torch.inference_mode():
        logps = model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return {"ids": ids, "logprobs": [logps[n, token].item() for n, token in enumerate(ids[1:])]}
