"""The outcome matrix: options (base and adapters) x tasks. Every task has outcomes of every option, and labels fit
both: src/activities/router.ts makes them so."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

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


@dataclass(frozen=True)
class Matrix:
    """`rates[t, o]` is the share of trials that option `o` solved at task `t`. The base model is the first option, and
    so wins ties."""

    options: list[str]
    texts: list[str]
    rates: np.ndarray
    labels: LabelAnswers | None


def matrix_of(given: Outcomes) -> Matrix:
    """Raises BadInput where there is nothing to cross-validate with."""
    options = [BASE, *(option for option in given.options if option != BASE)]
    texts = [task.text for task in given.tasks]
    if (different := len(set(texts))) < 2:
        raise BadInput(f"tasks: {different} different text; cross-validation needs at least 2")
    rates = np.array([[np.mean(task.outcomes[option]) for option in options] for task in given.tasks])
    return Matrix(options, texts, rates, given.labels)
