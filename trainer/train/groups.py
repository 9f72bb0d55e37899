"""The tasks that a step requests, and the batch that is made of its rollouts. Nothing here needs torch.

Invariants: the tasks of a step follow from the job and the step alone; only rows that carry a gradient are
kept: no constant group, no row without a loss token."""

import itertools
import random
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .channel import SamplerDiffers
from .job import Job, Rollout, Row
from .outliers import NO_LOGPROB

EPS = 1e-4
"""Added to a standard deviation before dividing by it: TRL's value."""

CONSTANT = 1e-8
"""Rewards of a group that differ by no more than this are equal (the method compares to 8 decimals)."""


def tasks_of_all_steps(job: Job) -> list[str]:
    """Returns the tasks of all steps in order, `groups_per_step` for each step. The first pass keeps the job's order,
    so that instances that belong together are in one step; every further pass is shuffled.

    No task occurs twice in a step: the remainder of a pass is dropped."""
    generator = random.Random(job.seed)
    whole = len(job.tasks) - len(job.tasks) % job.groups_per_step
    drawn = job.tasks[:whole]
    while len(drawn) < job.steps * job.groups_per_step:
        drawn += generator.sample(job.tasks, whole)
    return drawn[: job.steps * job.groups_per_step]


@dataclass(frozen=True)
class Batch:
    """The rows of one optimizer step. `advantages` has one entry a row, `tokens` is the number of loss tokens."""

    rows: list[Row]
    advantages: list[float]
    tokens: int
    metrics: dict[str, float]
    names: list[str] = field(default_factory=list)
    """The position of each row in the batch file."""

    @property
    def known_tokens(self) -> int:
        """The number of loss tokens that have a log-prob of the sampler's."""
        pairs = (pair for row in self.rows for pair in zip(row.mask, row.logprobs, strict=True))
        return sum(own for own, logprob in pairs if logprob > NO_LOGPROB)


def group_advantages(rewards: np.ndarray, kind: Literal["group", "batch"]) -> np.ndarray:
    """Advantages of rewards (groups, group_size), 0 in constant groups.

    group: (r - mean) / (std + eps) in each group. batch: r - mean in each group, over the std of these in the batch.
    Standard deviations are the sample's (n - 1), as in TRL."""
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    std = rewards.std(axis=1, keepdims=True, ddof=1) if kind == "group" else centred.std(ddof=1)
    return np.where(informative(rewards)[:, None], centred / (std + EPS), 0.0)


def informative(rewards: np.ndarray) -> np.ndarray:
    """For rewards (groups, group_size): which groups are not constant."""
    return rewards.max(axis=1) - rewards.min(axis=1) > CONSTANT


def training_batch(groups: list[list[Rollout]], advantage: Literal["group", "batch"]) -> Batch:
    """Keeps the rows that carry a gradient, each with its rollout's advantage; all rows of a rollout share it."""
    rewards = np.array([[rollout.reward for rollout in group] for group in groups])
    values = group_advantages(rewards, advantage).tolist()
    informs = informative(rewards).tolist()
    lines = itertools.count(1)
    kept = [
        (row, value, f"line {line} rows.{number}")
        for group, group_values, keep in zip(groups, values, informs, strict=True)
        for rollout, value, line in zip(group, group_values, lines, strict=False)
        if keep
        for number, row in enumerate(rollout.rows)
        if any(row.mask)
    ]
    return Batch(
        rows=[row for row, _, _ in kept],
        advantages=[value for _, value, _ in kept],
        tokens=sum(sum(row.mask) for row, _, _ in kept),
        metrics={
            "reward": float(rewards.mean()),
            "reward_std": float(rewards.std(ddof=1)),
            "informative_groups": sum(informs),
            "rollouts": rewards.size,
        },
        names=[name for _, _, name in kept],
    )


def check_gap(job: Job, gap: float, step: int) -> None:
    """Raises SamplerDiffers for a mean difference of log-probs, sampler's to trainer's, that no rounding explains."""
    if gap > job.max_logprob_gap:
        raise SamplerDiffers(
            f"log-probs of sampler and trainer differ by {gap:.4g} a token in step {step}, more than "
            f"training.maxLogprobGap {job.max_logprob_gap}; look at the base model, number format and adapters of the "
            "policy server, or raise training.maxLogprobGap"
        )
