"""Trains a gate. Invariants: every task counts the same, however many of its rollouts succeeded; what is
kept is the step that is best on tasks that no step saw, the first (nothing learned) among them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from .gated import GatedAdapters
from .job import BadWeighing, Row, Task, WeighJob

HELD_OUT = 0.2
"""Of the tasks."""
LEARNED_FILE = "learned.json"


@dataclass(frozen=True)
class _Rows:
    """Padded on the right: what follows a token never reaches it in a causal model."""

    ids: torch.Tensor
    shares: torch.Tensor
    """What each id but the first counts, [rows, tokens - 1]; 0 on those that were not sampled."""


def weigh(job: WeighJob, *, progress: Callable[[int, int], None]) -> None:
    """Learns and writes the folder: a policy, and learned.json beside it. Raises BadWeighing."""
    torch.manual_seed(job.seed)
    torch.set_num_threads(job.threads)
    learned = GatedAdapters(job)
    tasks = list(job.tasks)
    random.Random(job.seed).shuffle(tasks)
    cut = max(1, round(len(tasks) * HELD_OUT))
    held_out, train = (_batches(part, job.tokens_per_forward) for part in (tasks[:cut], tasks[cut:]))
    optimizer = torch.optim.Adam(learned.parameters, lr=learned.learning_rate)
    losses: list[float] = []
    best: list[torch.Tensor] = []
    for step in range(learned.steps + 1):
        with torch.no_grad():
            losses.append(sum(_loss(learned, rows).item() for rows in held_out) / cut)
        if not best or losses[-1] < min(losses[:-1]):
            best = [parameter.detach().clone() for parameter in learned.parameters]
        progress(step + 1, learned.steps + 1)
        if step == learned.steps:
            break
        optimizer.zero_grad()
        for rows in train:
            (_loss(learned, rows) / (len(tasks) - cut)).backward()
        optimizer.step()
    with torch.no_grad():
        for parameter, kept in zip(learned.parameters, best, strict=True):
            parameter.copy_(kept)
    _write(job, learned, losses)


def _loss(learned: GatedAdapters, rows: _Rows) -> torch.Tensor:
    logprobs = learned.logprobs(rows.ids)
    return -(logprobs * rows.shares.to(logprobs.device)).sum()


def _batches(tasks: list[Task], tokens: int) -> list[_Rows]:
    """Rows of like length together, each batch at most so many padded tokens, or one row."""
    rows = [(row, 1 / task.rollouts) for task in tasks for row in task.rows]
    rows.sort(key=lambda one: _length(one[0]), reverse=True)
    batches: list[list[tuple[Row, float]]] = []
    for one in rows:
        if batches and _length(batches[-1][0][0]) * (len(batches[-1]) + 1) <= tokens:
            batches[-1].append(one)
        else:
            batches.append([one])
    return [_padded(batch) for batch in batches]


def _length(row: Row) -> int:
    return len(row.prompt_ids) + len(row.completion_ids)


def _padded(batch: list[tuple[Row, float]]) -> _Rows:
    width = _length(batch[0][0])
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    shares = torch.zeros(len(batch), width)
    for n, (row, share) in enumerate(batch):
        if len(row.mask) != len(row.completion_ids):
            raise BadWeighing(f"mask: {len(row.mask)} of {len(row.completion_ids)} completion_ids; give one each")
        begin, end = len(row.prompt_ids), _length(row)
        ids[n, :end] = torch.tensor(row.prompt_ids + row.completion_ids)
        shares[n, begin:end] = torch.tensor(row.mask) * share
    return _Rows(ids, shares[:, 1:])


def _write(job: WeighJob, learned: GatedAdapters, losses: list[float]) -> None:
    output = Path(job.output_dir)
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as scratch:
        aside = Path(scratch) / "policy"
        learned.write(aside)
        (aside / LEARNED_FILE).write_text(json.dumps({"held_out_losses": losses}, indent=1) + "\n")
        shutil.rmtree(output, ignore_errors=True)
        aside.rename(output)
