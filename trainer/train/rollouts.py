"""The batch file of a step. Invariant: a `Rollout` from here can be trained on; anything else is a BadJob."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .job import BadJob

ROW_FIELDS = ("prompt_ids", "completion_ids", "logprobs", "mask")


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence: completion_ids, logprobs and mask have one entry a token from the first sampled token on."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float]
    mask: list[int]


@dataclass(frozen=True, slots=True)
class Rollout:
    rows: list[Row]
    reward: float


def read_groups(path: Path, *, tasks: list[str], group_size: int, vocabulary: int) -> list[list[Rollout]]:
    """Reads the groups of a batch file, in the order of `tasks`. Raises BadJob for anything that was not asked for."""
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise BadJob(f"batch file {path}: {error.strerror}; write it before answering") from error
    except ValueError as error:
        raise BadJob(f"batch file {path}: not JSON ({error}); write it whole before answering") from error
    groups = raw.get("groups") if isinstance(raw, dict) else None
    if not isinstance(groups, list) or len(groups) != len(tasks):
        found = len(groups) if isinstance(groups, list) else "no"
        raise BadJob(
            f"groups of {path}: {found} groups, asked for {len(tasks)}; answer one group a task, in the order asked for"
        )
    parsed = []
    for index, (group, task) in enumerate(zip(groups, tasks, strict=True)):
        where = f"groups[{index}]"
        _object(where, group)
        if group.get("task") != task:
            raise BadJob(f"{where}.task {group.get('task')!r}: asked for {task!r}; keep the order asked for")
        rollouts = group.get("rollouts", [])
        if len(rollouts) != group_size:
            raise BadJob(
                f"{where}.rollouts: {len(rollouts)} rollouts; send exactly group_size = {group_size} scored ones"
            )
        parsed.append([_rollout(f"{where}.rollouts[{n}]", rollout, vocabulary) for n, rollout in enumerate(rollouts)])
    return parsed


def _rollout(where: str, raw: dict[str, Any], vocabulary: int) -> Rollout:
    reward = _object(where, raw).get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        raise BadJob(f"{where}.reward {reward!r}: must be a finite number; only scored rollouts belong in a batch")
    return Rollout(
        [_row(f"{where}.rows[{n}]", row, vocabulary) for n, row in enumerate(raw.get("rows", []))], float(reward)
    )


def _object(where: str, raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise BadJob(f"{where} {str(raw)[:40]}: must be a JSON object; see docs/trainer-protocol.md")
    return raw


def _row(where: str, raw: dict[str, Any], vocabulary: int) -> Row:
    _object(where, raw)
    for name in ROW_FIELDS:
        if name not in raw:
            raise BadJob(f"{where}.{name}: missing; a row has {', '.join(ROW_FIELDS)}")
        values = raw[name]
        if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
            raise BadJob(f"{where}.{name} {str(values)[:40]!r}: must be a list of numbers, one a token")
    row = Row(*(raw[name] for name in ROW_FIELDS))
    length = len(row.completion_ids)
    if not row.prompt_ids or not length:
        raise BadJob(f"{where}: empty prompt_ids or completion_ids; leave the row out")
    if len(row.logprobs) != length or len(row.mask) != length:
        raise BadJob(
            f"{where}: {length} completion_ids, {len(row.logprobs)} logprobs, {len(row.mask)} mask; give one each"
        )
    for name, ids in (("prompt_ids", row.prompt_ids), ("completion_ids", row.completion_ids)):
        if min(ids) < 0 or max(ids) >= vocabulary:
            raise BadJob(
                f"{where}.{name}: ids from {min(ids)} to {max(ids)}; the base model's vocabulary has {vocabulary}"
            )
    if not set(row.mask) <= {0, 1}:
        raise BadJob(f"{where}.mask {sorted(set(row.mask))}: must be 0 or 1; 1 on tokens that carry loss")
    if not all(map(math.isfinite, row.logprobs)):
        raise BadJob(f"{where}.logprobs: not all finite; write 0 where a token was not sampled")
    return row
