"""The outcome matrix: options (base and adapters) x tasks. Invariant: every task has outcomes of every option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from trainer.command import BadInput, Strict

BASE = "base"

Trials = Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class LabelAnswers(Strict):
    """What the base model answered when it was asked which of `names` (the base model first) a task needs, once with
    so many `neighbours` each: logprobs[t][k], null for what was no candidate; all null where it named no label."""

    names: list[str] = Field(min_length=2)
    neighbours: list[int] = Field(min_length=1)
    logprobs: list[list[list[float | None]]]


class Task(Strict):
    text: str
    outcomes: dict[str, Trials]


class Outcomes(Strict):
    """{"options": [...], "tasks": [{"id", "text", "outcomes": {option: [trials]}}]}, and maybe labels."""

    options: list[str]
    tasks: list[Task] = Field(min_length=1)
    labels: LabelAnswers | None = None

    @field_validator("options")
    @classmethod
    def _hold_the_base_once(cls, options: list[str]) -> list[str]:
        if len(set(options)) < len(options):
            raise ValueError("must be a list of different names; name the base and each adapter once")
        if BASE not in options:
            raise ValueError(f"'{BASE}' is missing; the base model is always an option")
        return options


@dataclass(frozen=True)
class Matrix:
    """`rates[t, o]` is the share of trials that option `o` solved at task `t`. The base model is the first option, and
    so wins ties."""

    options: list[str]
    texts: list[str]
    rates: np.ndarray
    labels: LabelAnswers | None


def matrix_of(given: Outcomes) -> Matrix:
    """Raises BadInput for what is missing."""
    options = [BASE, *(option for option in given.options if option != BASE)]
    for index, task in enumerate(given.tasks):
        for option in options:
            if option not in task.outcomes:
                raise BadInput(f"tasks.{index}.outcomes.{option}: required; evaluate every option on every task")
    texts = [task.text for task in given.tasks]
    if (different := len(set(texts))) < 2:
        raise BadInput(f"tasks: {different} different text; cross-validation needs at least 2")
    if given.labels is not None:
        _check(given.labels, options=options, tasks=len(texts))
    rates = np.array([[np.mean(task.outcomes[option]) for option in options] for task in given.tasks])
    return Matrix(options, texts, rates, given.labels)


def _check(labels: LabelAnswers, *, options: list[str], tasks: int) -> None:
    wrong = [name for name in labels.names if name not in options]
    if labels.names[0] != BASE:
        wrong.insert(0, labels.names[0])
    if wrong:
        raise BadInput(f"labels.names {wrong[0]!r}: name the base first, then options alone")
    shape = [[len(labels.names)] * len(labels.neighbours)] * tasks
    if [[len(row) for row in task] for task in labels.logprobs] != shape:
        raise BadInput("labels.logprobs: give one list a task, in it one a number of neighbours, in it one a name")
