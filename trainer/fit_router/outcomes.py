"""The outcome matrix: options (base and adapters) x tasks. Invariant: every task has outcomes of every option."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator, model_validator

from trainer.command import Strict

BASE = "base"

Trials = Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class LabelAnswers(Strict):
    """The base model's answers to the question which of `names` (the base model first) task t needs, asked with
    neighbours[k] examples: logprobs[t][k] in nats, null for a name that was no candidate, all null without a label."""

    names: list[str] = Field(min_length=2)
    neighbours: list[int] = Field(min_length=1)
    logprobs: list[list[list[float | None]]]


class Task(Strict):
    text: str
    outcomes: dict[str, Trials]


class Outcomes(Strict):
    """{"options": [...], "tasks": [{"id", "text", "outcomes": {option: [trials]}}]}, and maybe labels.

    The base model is the first option, and so wins ties."""

    options: list[str]
    tasks: list[Task] = Field(min_length=1)
    labels: LabelAnswers | None = None

    @field_validator("options")
    @classmethod
    def _with_the_base_first(cls, options: list[str]) -> list[str]:
        if len(set(options)) < len(options):
            raise ValueError("must be a list of different names; name the base and each adapter once")
        if BASE not in options:
            raise ValueError(f"'{BASE}' is missing; the base model is always an option")
        return [BASE, *(option for option in options if option != BASE)]

    @model_validator(mode="after")
    def _is_complete(self) -> Outcomes:
        for index, task in enumerate(self.tasks):
            for option in self.options:
                if option not in task.outcomes:
                    raise ValueError(f"tasks.{index}.outcomes.{option}: required; evaluate every option on every task")
        if len(set(self.texts)) < 2:
            raise ValueError("tasks: they have one text; cross-validation needs at least 2")
        return self

    @cached_property
    def texts(self) -> list[str]:
        return [task.text for task in self.tasks]

    @cached_property
    def rates(self) -> np.ndarray:
        """[t, o]: the share of trials that option `o` solved at task `t`."""
        return np.array([[np.mean(task.outcomes[option]) for option in self.options] for task in self.tasks])
