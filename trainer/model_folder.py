"""Inspects a base model's folder: the id of the model, whether its files are complete, the modules that a LoRA would
train, and the log-probs that a policy server of this model returns.

Invariants: nothing heavy is imported before a function needs it (torch and transformers take seconds); modules are
those of the model as transformers builds it, never a checkpoint's names (experts that are listed one by one there are
one parameter of the model)."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

from pydantic import Field

from trainer.command import BadInput, Closed, tell_progress, write_json


class Question(Closed):
    """`model`: the base model's folder."""

    model: str = Field(min_length=1)


def model_at(folder: Path, *, name: str) -> Path:
    """The folder, which the user knows as `name`. Raises BadInput where it is no model's."""
    if not (folder / "config.json").is_file():
        fix = "make one with `make base-model`, or name the folder of one"
        raise BadInput(f"{name} {folder}: no model there (config.json is missing); {fix}")
    return folder


def eos_ids(folder: Path) -> frozenset[int]:
    """The ids that end a turn. Raises BadInput."""
    generation = folder / "generation_config.json"
    config = generation if generation.is_file() else folder / "config.json"
    eos = json.loads(config.read_bytes()).get("eos_token_id")
    if eos is None:
        raise BadInput(f"{folder}: names no eos_token_id; set it in its generation_config.json")
    return frozenset(eos if isinstance(eos, list) else [eos])


def answer_base_id(question: Question) -> dict[str, str]:
    """{"id"}; reports progress in bytes."""
    return {"id": base_id(Path(question.model), tell_progress)}


def base_id(model: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> str:
    """`<folder>@<hash of all files>`: another base has another id, also in a folder of the same name. In the cache of a
    model hub it is `<owner>/<name>@<commit>`. Where CAMPAIGN_HOME names a home, it keeps the hashes, and files that
    have not changed since are not read again. `progress` gets bytes done and in all. Raises BadInput."""
    folder = model_at(model, name="base model").resolve()
    files = _files(folder)
    hub = SNAPSHOT.fullmatch("/".join(folder.parts[-3:]))
    same, digest = _known_digests().get(str(folder), (None, ""))
    if same != files:
        digest = hub[3] if hub else _digest(folder, [(name, size) for name, _, size, *_ in files], progress)
        # Others may write at once: what one of them forgets is found once more.
        if home := os.environ.get("CAMPAIGN_HOME"):
            with contextlib.suppress(OSError):
                write_json(Path(home, KNOWN), {**_known_digests(), str(folder): [files, digest]})
    return f"{f'{hub[1]}/{hub[2]}' if hub else os.path.basename(os.path.abspath(model))}@{digest[:12]}"


SNAPSHOT = re.compile(r"models--([^/]+?)--([^/]+)/snapshots/([0-9a-f]{40})")
"""End of the path of a model in the cache of huggingface_hub: owner, name and commit."""


def _files(folder: Path) -> list[list[Any]]:
    """Returns name, inode, size, mtime and ctime of each file. They show a change: no program sets ctime back."""
    # A folder of a model hub's cache holds links to its files.
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return [[name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for name, stat in stats]


KNOWN = "base-ids.json"


def _known_digests() -> dict[str, Any]:
    """Returns [files, digest] by folder; empty if CAMPAIGN_HOME is not set or the file can't be read."""
    home = os.environ.get("CAMPAIGN_HOME")
    try:
        return json.loads(Path(home, KNOWN).read_bytes()) if home else {}
    except (OSError, ValueError):
        return {}


def _digest(folder: Path, files: list[tuple[str, int]], progress: Callable[[int, int], None]) -> str:
    digest, done, total = hashlib.sha256(), 0, sum(size for _, size in files)
    for name, _ in files:
        digest.update(f"{name}\n".encode())
        with (folder / name).open("rb") as file:
            while chunk := file.read(1 << 22):
                digest.update(chunk)
                done += len(chunk)
                progress(done, total)
    return digest.hexdigest()


POINTER = b"version https://git-lfs.github.com/spec/"


def check_files(folder: Path) -> None:
    """Raises BadInput for a file that was not downloaded, or not to its end."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        with file.open("rb") as handle:
            if handle.read(len(POINTER)) == POINTER:
                raise BadInput(
                    f"{file} is a git-lfs pointer and not the file itself; run `git lfs pull` in {folder}, "
                    "or download the model again"
                )
        if file.suffix == ".safetensors":
            try:
                with safe_open(file, framework="np"):
                    pass
            except SafetensorError as error:
                raise BadInput(f"{file} is not whole: {error}; download it again") from error


class NewAdapter(Closed):
    """An adapter of this rank that changes nothing, and the folder that is made for it."""

    rank: int = Field(ge=1)
    output_dir: str = Field(min_length=1)


class ModelQuestion(Question):
    """`target_modules` as in a job; `adapter`: one to be made of them, to try a policy server with."""

    target_modules: list[str]
    adapter: NewAdapter | None = None


class LoraModules(NamedTuple):
    """`found`: the modules that a LoRA trains, by their whole names. `unknown`: wanted names that no module has.
    `choices`: names that may be wanted."""

    found: dict[str, Any]
    unknown: list[str]
    choices: list[str]


def check_model(question: ModelQuestion) -> dict[str, Any]:
    """{"modules": [{"name", "in", "out"}], "unknown", "choices"}, from headers alone. Raises BadInput."""
    check_files(Path(question.model))
    found, unknown, choices = lora_modules(empty_model(question.model), question.target_modules)
    if question.adapter and not unknown:
        write_adapter(question.adapter, base=question.model, modules=found)
    modules = [{"name": name, "in": one.in_features, "out": one.out_features} for name, one in found.items()]
    return {"modules": modules, "unknown": unknown, "choices": choices}


def write_adapter(new: NewAdapter, *, base: str, modules: dict[str, Any]) -> None:
    import torch

    from trainer.peft_folder import write_peft_folder

    factors = {
        name: (torch.zeros(new.rank, one.in_features), torch.zeros(one.out_features, new.rank))
        for name, one in modules.items()
    }
    factors = {name: (a.bfloat16(), b.bfloat16()) for name, (a, b) in factors.items()}
    write_peft_folder(Path(new.output_dir), base=base, rank=new.rank, factors=factors)


def empty_model(folder: str) -> Any:
    """The model with the weights left out, as transformers builds it before it reads them. Raises BadInput."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    try:
        config = AutoConfig.from_pretrained(folder)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config)
    except Exception as error:  # an architecture may refuse its configuration in any way
        raise BadInput(
            f"{folder}/config.json: {error}; name a causal language model that transformers knows"
        ) from error


def lora_modules(model: Any, wanted: list[str]) -> LoraModules:
    """The rule of what a LoRA can train: linear modules, by a name or the end of one."""
    import torch

    linear = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    found: dict[str, Any] = {}
    unknown = []
    for one in wanted:
        of_one = {name: module for name, module in linear.items() if f".{name}".endswith(f".{one}")}
        found |= of_one
        unknown += [] if of_one else [one]
    choices = {name.rsplit(".", 1)[-1] for name in linear} - {"lm_head"}
    return LoraModules(found, unknown, sorted(choices))


FINGERPRINT_IDS = 64
STRIDE = 7919
"""A prime: the ids lie all over the vocabulary, and say nothing that any model has been trained to say."""


def fingerprint(question: Question) -> dict[str, Any]:
    """{"ids", "logprobs"}: fixed ids, and the log-prob of each but the first, in the precision of the files. Raises
    BadInput."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(question.model, dtype="auto").eval()
    except (OSError, ValueError) as error:
        raise BadInput(f"base model {question.model}: {error}") from error
    ids = unlikely_ids(FINGERPRINT_IDS, model.config.get_text_config().vocab_size)
    with torch.inference_mode():
        logps = model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
    return {"ids": ids, "logprobs": [logps[n, token].item() for n, token in enumerate(ids[1:])]}


def unlikely_ids(count: int, vocabulary: int) -> list[int]:
    """Returns ids that are spread over the vocabulary's lower half, without special tokens and padding at its ends."""
    return [STRIDE * (n + 1) % (vocabulary // 2) for n in range(count)]
