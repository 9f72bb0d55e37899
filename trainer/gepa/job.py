"""The job file of a search. Invariant: a `Job` holds only values that GEPA can run with; everything else is a `BadJob`
that names the field, the value and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from trainer.command import Closed, read_input
from trainer.train.job import BadJob


class Job(Closed):
    """Fields as in docs/arms.md. None has a default: the values are the campaign's to choose."""

    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    train: list[str] = Field(min_length=1)
    """Task ids that minibatches are drawn from."""
    validation: list[str] = Field(min_length=1)
    """Task ids that every accepted candidate is evaluated on."""
    prompt: str
    """Where the search begins; empty: the base model without a prompt of its own."""
    place: Literal["before", "instead"]
    minibatch_size: int = Field(ge=1)
    candidate_selection: Literal["pareto", "current_best", "epsilon_greedy", "top_k_pareto"]
    acceptance: Literal["strict_improvement", "improvement_or_equal"]
    merges: int = Field(ge=0)
    """How often two candidates are merged at most; 0: never."""
    reflection_chars: int = Field(ge=1)
    """The most characters of one question to the reflection model."""


def read_job(path: str) -> Job:
    """Reads a job file. Raises BadJob."""
    return read_input(Job, Path(path), name="--job", refusal=BadJob)
