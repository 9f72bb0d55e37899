"""The job file of a training on rollouts, and the batch files that answer its requests (docs/learner-protocol.md).

Invariant: what is read here can be trained on. Anything else is a BadInput, or a DamagedBatch where a batch file can't
be read at all."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from trainer.command import BadInput, Closed, Strict, first_problem
from trainer.model_folder import model_at

ModelFolder = Annotated[str, AfterValidator(lambda folder: str(model_at(Path(folder), name="folder")))]


class Lora(Closed):
    r: int = Field(ge=1)
    alpha: float = Field(gt=0)
    dropout: float = Field(ge=0, lt=1)
    target_modules: list[str] = Field(min_length=1)


class Job(Closed):
    """No field has a default: the values are the campaign's to choose."""

    base_model: ModelFolder
    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    lora: Lora
    learning_rate: float = Field(ge=0)
    max_grad_norm: float = Field(ge=0)
    """0: gradients are not clipped."""
    checkpoint_every: int = Field(ge=1)
    threads: int = Field(ge=1)
    dtype: Literal["float32", "bfloat16"]
    tokens_per_forward: int = Field(ge=1)
    gradient_checkpointing: bool
    report_to: Literal["tensorboard", "wandb", "none"]
    processes: int = Field(ge=1)
    """One a device; each computes a part of every step."""
    tasks: list[str] = Field(min_length=1)
    steps: int = Field(ge=1)
    groups_per_step: int = Field(ge=1)
    group_size: int = Field(ge=2)
    """A group of one has no contrast."""
    clip: float = Field(gt=0)
    delta: float = Field(gt=0)
    importance_sampling_clip_max: float | None = Field(gt=0)
    off_policy_mask_threshold: float = Field(gt=0)
    max_logprob_gap: float = Field(gt=0)
    kl: float = Field(ge=0)
    temperature: float = Field(gt=0)
    """Greedy rollouts of a group are all the same."""
    advantage: Literal["group", "batch"]

    @property
    def output(self) -> Path:
        """The folder that the training writes to."""
        return Path(self.output_dir).resolve()

    INDECISIVE: ClassVar[set[str]] = {
        *("base_model", "output_dir", "steps", "checkpoint_every"),
        *("threads", "processes", "report_to"),
    }
    """Fields that do not decide the weights of step N as they are."""

    def fingerprint(self) -> str:
        """Digest of what decides the weights of step N: a checkpoint of a job with another one cannot be continued.

        Not the base model's folder, which may move: the worker gives another base another output_dir."""
        decisive = self.model_dump(exclude=self.INDECISIVE)
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @field_validator("report_to")
    @classmethod
    def _has_package(cls, tool: str) -> str:
        if tool != "none" and importlib.util.find_spec(tool) is None:
            raise ValueError(
                f"no such package; run `{sys.executable} -m pip install {tool}`, or set training.reportTo to none"
            )
        return tool

    @field_validator("groups_per_step")
    @classmethod
    def _has_tasks(cls, groups: int, info: ValidationInfo) -> int:
        tasks = info.data.get("tasks", [])
        if tasks and groups > len(tasks):
            raise ValueError(f"a step takes each task at most once; there are {len(tasks)} tasks: lower it to that")
        return groups


def set_threads(threads: int) -> None:
    """Sets up OpenMP; torch must not be imported yet.

    Threads that wait sleep instead of spinning: spinning takes the cores from the servers that share them, and a step
    takes several times as long (docs/decisions.md)."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def use_device(processes: int, rank: int) -> None:
    """Leaves this process one GPU of those that it was given, if any; CUDA must not be in use yet. Raises BadInput."""
    dealt = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    devices = [device for device in dealt.split(",") if device and device != "-1"]
    if not devices:
        return
    if len(devices) < processes:
        raise BadInput(
            f"processes {processes}: CUDA_VISIBLE_DEVICES {dealt!r} names {len(devices)} GPUs; name one each"
        )
    os.environ["RANKS_DEVICES"], os.environ["CUDA_VISIBLE_DEVICES"] = dealt, devices[rank]


class DamagedBatch(RuntimeError):
    """The batch file is not as it was written: the worker writes another one for the next attempt."""


class Row(Strict):
    """One sequence; `logprobs` and `mask` have one entry a completion id, `mask` 1 on those that carry loss."""

    prompt_ids: list[int] = Field(min_length=1)
    completion_ids: list[int] = Field(min_length=1)
    logprobs: list[float]
    mask: list[int]

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)

    @model_validator(mode="after")
    def _is_aligned(self) -> Row:
        lengths = {name: len(getattr(self, name)) for name in ("completion_ids", "logprobs", "mask")}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{', '.join(f'{n} {name}' for name, n in lengths.items())}; give one each")
        if not set(self.mask) <= {0, 1}:
            raise ValueError(f"mask holds {sorted(set(self.mask))}; give 1 on tokens that carry loss, else 0")
        return self


class RolloutLine(Strict):
    """A line of a batch file, whatever else it holds."""

    task: str
    reward: float


class Rollout(RolloutLine):
    rows: list[Row]


Line = TypeVar("Line", bound=RolloutLine)


def read_rollouts(model: type[Line], path: Path, *, tasks: list[str], group_size: int) -> list[list[Line]]:
    """Reads the groups of a batch file, in the order of `tasks`. Raises BadInput for what was not asked for, and
    DamagedBatch."""
    wanted = [task for task in tasks for _ in range(group_size)]
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DamagedBatch(f"batch file {path}: {error.strerror}; name a readable file") from error
    found = []
    for number, (text, task) in enumerate(zip(lines, wanted, strict=False), start=1):
        where = f"line {number} of {path}"
        try:
            found.append(rollout := model.model_validate_json(text))
        except ValidationError as error:
            field, line = first_problem(error, where)
            if error.errors(include_url=False)[0]["type"] == "json_invalid":
                raise DamagedBatch(line) from error
            raise BadInput(f"{where}: {line}" if field else line) from error
        if rollout.task != task:
            raise BadInput(f"{where}: task {rollout.task!r}, asked for {task!r}; keep the order asked for")
    if len(lines) != len(wanted):
        raise DamagedBatch(f"batch file {path}: holds {len(lines)} rollouts of {len(wanted)}")
    return [found[at : at + group_size] for at in range(0, len(found), group_size)]


def read_groups(path: Path, *, tasks: list[str], group_size: int, vocabulary: int) -> list[list[Rollout]]:
    """`read_rollouts` of rows of ids. Raises what it does, and BadInput for ids beyond the vocabulary."""
    groups = read_rollouts(Rollout, path, tasks=tasks, group_size=group_size)
    for number, rollout in enumerate(itertools.chain(*groups), start=1):
        for row in rollout.rows:
            ids = row.prompt_ids + row.completion_ids
            if min(ids) < 0 or max(ids) >= vocabulary:
                raise BadInput(
                    f"line {number} of {path}: ids from {min(ids)} to {max(ids)}; "
                    f"sample from the base model, whose vocabulary has {vocabulary}"
                )
    return groups
