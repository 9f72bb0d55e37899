"""The batch file of a step. Invariant: a `Rollout` from here can be trained on; anything else is a BadJob, or a
DamagedBatch where the file can't be read at all."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from trainer.command import Strict, read_input

from .job import BadJob


class DamagedBatch(RuntimeError):
    """The batch file can't be read, or is no JSON: the worker writes another one for the next attempt."""


class Row(Strict):
    """One sequence: completion_ids, logprobs and mask have one entry a token from the first sampled token on.

    logprobs is None where the completion was sampled under another prompt (a hint, which this one is without)."""

    prompt_ids: list[int] = Field(min_length=1)
    completion_ids: list[int] = Field(min_length=1)
    logprobs: list[float] | None
    mask: list[int]

    @model_validator(mode="after")
    def _is_aligned(self) -> Row:
        tokens, mask = len(self.completion_ids), len(self.mask)
        logprobs = tokens if self.logprobs is None else len(self.logprobs)
        if not tokens == logprobs == mask:
            raise ValueError(f"{tokens} completion_ids, {logprobs} logprobs, {mask} mask; give one each")
        if not set(self.mask) <= {0, 1}:
            raise ValueError(f"mask holds {sorted(set(self.mask))}; give 1 on tokens that carry loss, else 0")
        return self


class Rollout(Strict):
    rows: list[Row]
    reward: float


class _Group(Strict):
    task: str
    rollouts: list[Rollout]


class _Batch(Strict):
    groups: list[_Group]


def read_groups(path: Path, *, tasks: list[str], group_size: int, vocabulary: int) -> list[list[Rollout]]:
    """Reads the groups of a batch file, in the order of `tasks`. Raises BadJob for anything that was not asked for, and
    DamagedBatch."""
    try:
        groups = read_input(_Batch, path, name="batch file", refusal=BadJob).groups
    except BadJob as error:
        if _is_damaged(error.__cause__):
            raise DamagedBatch(str(error)) from error
        raise
    if len(groups) != len(tasks):
        raise BadJob(
            f"groups of {path}: {len(groups)} groups, asked for {len(tasks)}; "
            "answer one group a task, in the order asked for"
        )
    for index, (group, task) in enumerate(zip(groups, tasks, strict=True)):
        where = f"groups.{index}"
        if group.task != task:
            raise BadJob(f"{where}.task {group.task!r}: asked for {task!r}; keep the order asked for")
        if len(group.rollouts) != group_size:
            raise BadJob(
                f"{where}.rollouts: {len(group.rollouts)} rollouts; send exactly group_size = {group_size} scored ones"
            )
        for number, rollout in enumerate(group.rollouts):
            _check_ids(f"{where}.rollouts.{number}", rollout, vocabulary)
    return [group.rollouts for group in groups]


def _is_damaged(cause: BaseException | None) -> bool:
    if isinstance(cause, ValidationError):
        return cause.errors(include_url=False, include_context=False)[0]["type"] == "json_invalid"
    return isinstance(cause, OSError)


def _check_ids(where: str, rollout: Rollout, vocabulary: int) -> None:
    for number, row in enumerate(rollout.rows):
        for name, ids in (("prompt_ids", row.prompt_ids), ("completion_ids", row.completion_ids)):
            if min(ids) < 0 or max(ids) >= vocabulary:
                raise BadJob(
                    f"{where}.rows.{number}.{name}: ids from {min(ids)} to {max(ids)}; "
                    f"sample from the base model, whose vocabulary has {vocabulary}"
                )
