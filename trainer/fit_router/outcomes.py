"""The outcome matrix: options (base and adapters) x tasks. Invariant: every task has outcomes of every option."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from trainer.inputs import Strict, read_input

BASE = "base"

Trials = Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)]


class BadOutcomes(ValueError):
    """The outcome matrix cannot be fitted on; the message names the field, the value and the fix."""


@dataclass(frozen=True)
class Outcomes:
    """`successes[t][o]`: the outcomes, in [0, 1], of each trial of option `o` at task `t`. `options[0]` is the base
    model."""

    options: list[str]
    texts: list[str]
    successes: list[list[list[float]]]


class _Task(Strict):
    text: str
    outcomes: dict[str, Trials]


class _Matrix(Strict):
    options: list[str]
    tasks: list[_Task] = Field(min_length=1)

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
    return Outcomes(
        options=options,
        texts=[task.text for task in matrix.tasks],
        successes=[[task.outcomes[option] for option in options] for task in matrix.tasks],
    )
