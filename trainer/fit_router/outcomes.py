"""The outcome matrix: options (base and adapters) x tasks. Invariant: every task has outcomes of every option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from trainer.command import Strict, read_input

BASE = "base"

Trials = Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class BadOutcomes(ValueError):
    """The outcome matrix cannot be fitted on; the message names the field, the value and the fix."""


class LabelAnswers(Strict):
    """What the base model answered when it was asked which of `names` (the base model first) a task needs, once with
    so many `neighbours` each: logprobs[t][k], null for what was no candidate; all null where it named no label."""

    names: list[str] = Field(min_length=2)
    neighbours: list[int] = Field(min_length=1)
    logprobs: list[list[list[float | None]]]


@dataclass(frozen=True)
class Outcomes:
    """`successes[t][o]`: the outcomes, in [0, 1], of each trial of option `o` at task `t`. `options[0]` is the base
    model."""

    options: list[str]
    texts: list[str]
    successes: list[list[list[float]]]
    labels: LabelAnswers | None = None


class _Task(Strict):
    text: str
    outcomes: dict[str, Trials]


class _Matrix(Strict):
    options: list[str]
    tasks: list[_Task] = Field(min_length=1)
    labels: LabelAnswers | None = None

    @field_validator("options")
    @classmethod
    def _hold_the_base_once(cls, options: list[str]) -> list[str]:
        if len(set(options)) < len(options):
            raise ValueError("must be a list of different names; name the base and each adapter once")
        if BASE not in options:
            raise ValueError(f"'{BASE}' is missing; the base model is always an option")
        return options


def read_outcomes(path: Path) -> Outcomes:
    """Reads {"options": [...], "tasks": [{"id", "text", "outcomes": {option: [trials]}}]}. Raises BadOutcomes."""
    matrix = read_input(_Matrix, path, name="--in", refusal=BadOutcomes)
    # The base model first: there it wins ties.
    options = [BASE, *(option for option in matrix.options if option != BASE)]
    for index, task in enumerate(matrix.tasks):
        for option in options:
            if option not in task.outcomes:
                raise BadOutcomes(f"tasks.{index}.outcomes.{option}: required; evaluate every option on every task")
    if matrix.labels is not None:
        _check(matrix.labels, options=options, tasks=len(matrix.tasks))
    return Outcomes(
        options=options,
        texts=[task.text for task in matrix.tasks],
        successes=[[task.outcomes[option] for option in options] for task in matrix.tasks],
        labels=matrix.labels,
    )


def _check(labels: LabelAnswers, *, options: list[str], tasks: int) -> None:
    if labels.names[0] != BASE or (unknown := [name for name in labels.names if name not in options]):
        named = labels.names[0] if labels.names[0] != BASE else unknown[0]
        raise BadOutcomes(f"labels.names {named!r}: name the base first, then options alone")
    shape = [len(labels.neighbours)] * tasks
    if [len(one) for one in labels.logprobs] != shape or any(
        len(row) != len(labels.names) for one in labels.logprobs for row in one
    ):
        raise BadOutcomes("labels.logprobs: give one list a task, in it one a number of neighbours, in it one a name")
