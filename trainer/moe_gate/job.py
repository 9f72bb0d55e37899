"""The job file of a gate. Invariant: what it holds is complete; unknown fields are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from trainer.command import Closed


class BadGateJob(ValueError):
    """No gate can be trained; the message names the field, the value and the fix."""


class Row(Closed):
    """One sequence; mask has one entry a completion id, 1 on those that were sampled."""

    prompt_ids: list[int] = Field(min_length=1)
    completion_ids: list[int] = Field(min_length=1)
    mask: list[Literal[0, 1]]


class Task(Closed):
    """A train task that was solved: the rows of its different successful rollouts, all together."""

    rows: list[Row] = Field(min_length=1)
    rollouts: int = Field(ge=1)


class GateJob(Closed):
    """`output_dir` is made; what is there already is replaced."""

    base_model: str = Field(min_length=1)
    adapters: list[str] = Field(min_length=2)
    tasks: list[Task] = Field(min_length=2)
    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    threads: int = Field(ge=1)
    dtype: Literal["float32", "bfloat16"]
    tokens_per_forward: int = Field(ge=1)

    @field_validator("base_model")
    @classmethod
    def _is_a_model(cls, folder: str) -> str:
        if not (Path(folder) / "config.json").is_file():
            raise ValueError("no model folder (config.json) there; name the base model's")
        return folder
