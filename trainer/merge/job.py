"""The merge file. Invariant: what it holds is complete; unknown fields are refused."""

from __future__ import annotations

from pydantic import Field

from trainer.inputs import Closed


class BadMerge(ValueError):
    """The adapters cannot be merged; the message names the field, the value and the fix."""


class Part(Closed):
    path: str = Field(min_length=1)
    weight: float


class MergeJob(Closed):
    """`output_dir` is made; an adapter that is there already is replaced."""

    adapters: list[Part] = Field(min_length=1)
    output_dir: str = Field(min_length=1)
