"""The job file. Invariant: a `Job` holds only values that training can run with; everything else is a `BadJob` that
names the field, the value and the fix."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from trainer.command import Closed, first_problem, read_input

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
"""Of a PEFT folder."""


class BadJob(ValueError):
    """The job, or a batch of rollouts that belongs to it, cannot be trained on. Trying again does not help."""


class Lora(Closed):
    r: int = Field(ge=1)
    alpha: float = Field(gt=0)
    dropout: float = Field(ge=0, lt=1)
    target_modules: list[str] = Field(min_length=1)


class LoraJob(Closed):
    """What every job of one LoRA says. None has a default: the values are the campaign's to choose."""

    base_model: str
    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    lora: Lora
    init_adapter: str | None
    learning_rate: float = Field(ge=0)
    max_grad_norm: float = Field(gt=0)
    checkpoint_every: int = Field(ge=1)
    threads: int = Field(ge=1)
    dtype: Literal["float32", "bfloat16"]
    tokens_per_forward: int = Field(ge=1)
    gradient_checkpointing: bool

    INDECISIVE: ClassVar[set[str]] = {
        *("base_model", "output_dir", "init_adapter", "steps", "checkpoint_every", "threads")
    }
    """Fields that do not decide the weights of step N as they are."""

    @field_validator("base_model")
    @classmethod
    def _is_a_model(cls, folder: str) -> str:
        if not (Path(folder) / "config.json").is_file():
            raise ValueError("no model folder (config.json) there; build the base model or name its folder")
        return folder

    @field_validator("init_adapter")
    @classmethod
    def _is_an_adapter(cls, folder: str | None) -> str | None:
        for name in ADAPTER_FILES if folder is not None else ():
            if not (Path(folder) / name).is_file():
                raise ValueError(f"no PEFT adapter folder ({name}) there; name one, or null for a fresh LoRA")
        return folder

    def fingerprint(self) -> str:
        """Digest of what decides the weights of step N: a checkpoint of a job with another one cannot be continued.

        Not the base model's folder, which may move: the worker gives another base another output_dir. Nor the initial
        adapter's: what lies there counts."""
        decisive = self.model_dump(exclude=self.INDECISIVE)
        if self.init_adapter is not None:
            decisive["init_adapter"] = [_sha256(Path(self.init_adapter) / name) for name in ADAPTER_FILES]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


class Job(LoraJob):
    """Fields as in docs/learner-protocol.md."""

    tasks: list[str] = Field(min_length=1)
    steps: int = Field(ge=1)
    groups_per_step: int = Field(ge=1)
    group_size: int
    loss: Literal["grpo"]
    clip: float = Field(gt=0)
    kl: float = Field(ge=0)
    temperature: float
    advantage: Literal["group", "batch"]

    @field_validator("groups_per_step")
    @classmethod
    def _has_tasks(cls, groups: int, info: ValidationInfo) -> int:
        tasks = info.data.get("tasks", [])
        if tasks and groups > len(tasks):
            raise ValueError(f"a step takes each task at most once; there are {len(tasks)} tasks: lower it to that")
        return groups

    @field_validator("group_size")
    @classmethod
    def _has_contrast(cls, size: int) -> int:
        if size < 2:
            raise ValueError("a group of one has no contrast; use an integer of at least 2")
        return size

    @field_validator("temperature")
    @classmethod
    def _draws(cls, temperature: float) -> float:
        if not temperature > 0:
            raise ValueError("greedy rollouts of a group are all the same; use a number above 0")
        return temperature


def _sha256(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def read_job(path: str) -> Job:
    """Reads a job file. Raises BadJob."""
    return read_input(Job, Path(path), name="--job", refusal=BadJob)


def parse_job(raw: Any) -> Job:
    """Checks a decoded job. Raises BadJob."""
    try:
        return Job.model_validate(raw)
    except ValidationError as error:
        raise BadJob(first_problem(error, "job").line) from error
