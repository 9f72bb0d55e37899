"""From scored rollouts to the inputs of the loss.

Invariants: ids, masks and log-probs are trained on as they were recorded, and only rows that carry a gradient are
kept: no constant group, no row without a loss token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from .job import Rollout, Row, TokenRow

EPS = 1e-4
"""Added to a standard deviation before dividing by it: TRL's value."""

CONSTANT = 1e-8
"""Rewards of a group that differ by no more than this are equal (the method compares to 8 decimals)."""


@dataclass(frozen=True)
class Batch:
    """What one optimizer step trains on. `advantages` has one entry a row, `tokens` is the number of loss tokens."""

    rows: list[Row]
    advantages: list[float]
    tokens: int
    metrics: dict[str, float]

    @property
    def known_tokens(self) -> int:
        """Loss tokens of rows that bring the sampler's log-probs."""
        return sum(sum(row.mask) for row in self.rows if row.logprobs is not None)


def group_advantages(rewards: torch.Tensor, kind: Literal["group", "batch"]) -> torch.Tensor:
    """Advantages of rewards (groups, group_size), 0 in constant groups.

    group: (r - mean) / (std + eps) in each group. batch: r - mean in each group, over the std of these in the batch.
    Standard deviations are the sample's (n - 1), as in TRL."""
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    std = rewards.std(dim=1, keepdim=True) if kind == "group" else centred.std()
    return torch.where(informative(rewards).unsqueeze(1), centred / (std + EPS), 0.0)


def informative(rewards: torch.Tensor) -> torch.Tensor:
    """For rewards (groups, group_size): which groups are not constant."""
    return rewards.amax(dim=1) - rewards.amin(dim=1) > CONSTANT


def training_batch(groups: list[list[Rollout]], advantage: Literal["group", "batch"]) -> Batch:
    """Keeps the rows that carry a gradient, each with its rollout's advantage; all rows of a rollout share it."""
    rewards = torch.tensor([[rollout.reward for rollout in group] for group in groups], dtype=torch.float64)
    values = group_advantages(rewards, advantage).tolist()
    informs = informative(rewards).tolist()
    kept = [
        (row, value)
        for group, group_values, keep in zip(groups, values, informs, strict=True)
        if keep
        for rollout, value in zip(group, group_values, strict=True)
        for row in rollout.rows
        if any(row.mask)
    ]
    return Batch(
        rows=[row for row, _ in kept],
        advantages=[value for _, value in kept],
        tokens=sum(sum(row.mask) for row, _ in kept),
        metrics={
            "reward": rewards.mean().item(),
            "reward_std": rewards.std().item(),
            "informative_groups": sum(informs),
        },
    )


def micro_batches(
    batch: Batch, *, tokens_per_forward: int, pad_id: int, device: torch.device, shares: bool = False
) -> list[dict[str, torch.Tensor]]:
    """Inputs for TRL's loss, in chunks of at most `tokens_per_forward` tokens; `shares` as in `chunks` (logps.py).

    Rows are padded on the right only: what follows a token never reaches it in a causal model, so padding is exact.
    TRL's `prompt` is the part that all rows of the micro-batch have as prompt; the rest of longer prompts counts as
    unmasked completion. Each is normalised by the loss tokens of the whole batch, so that their losses add up to the
    batch's."""
    return [
        _pad([batch.rows[i] for i in chunk], [batch.advantages[i] for i in chunk], batch.tokens, pad_id, device)
        for chunk in chunks(batch.rows, tokens_per_forward, shares=shares)
    ]


def chunks(rows: Sequence[TokenRow], tokens: int, *, shares: bool = False) -> list[list[int]]:
    """Indexes of rows of like length together, the longest first, each chunk at most so many padded tokens, or one row.
    `shares`: a row is followed by the others of its prompt, which is computed once, without padding."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].length, reverse=True)
    if shares:
        by_prompt: dict[tuple[int, ...], list[int]] = {}
        for index in order:
            by_prompt.setdefault(tuple(rows[index].prompt_ids), []).append(index)
        order = [index for group in by_prompt.values() for index in group]

    def computed(chunk: list[int]) -> int:
        if not shares:
            return rows[chunk[0]].length * len(chunk)
        prompts = {tuple(rows[i].prompt_ids) for i in chunk}
        return sum(map(len, prompts)) + sum(len(rows[i].completion_ids) for i in chunk)

    made: list[list[int]] = []
    for index in order:
        if made and computed([*made[-1], index]) <= tokens:
            made[-1].append(index)
        else:
            made.append([index])
    return made


def _pad(
    rows: list[Row], advantages: list[float], tokens: int, pad_id: int, device: torch.device
) -> dict[str, torch.Tensor]:
    width = max(row.length for row in rows)
    prompt = min(len(row.prompt_ids) for row in rows)

    def right(lists: list[list], fill: float, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([values + [fill] * (width - len(values)) for values in lists], dtype=dtype, device=device)

    ids = right([row.prompt_ids + row.completion_ids for row in rows], pad_id, torch.long)
    real = right([[1] * row.length for row in rows], 0, torch.long)
    mask = right([[0] * len(row.prompt_ids) + row.mask for row in rows], 0, torch.long)
    logprobs = right([[0.0] * len(row.prompt_ids) + (row.logprobs or []) for row in rows], 0.0, torch.float32)
    return {
        "prompt_lengths": torch.tensor([len(row.prompt_ids) for row in rows], device=device),
        "prompt_ids": ids[:, :prompt],
        "prompt_mask": real[:, :prompt],
        "completion_ids": ids[:, prompt:],
        "completion_mask": real[:, prompt:],
        "tool_mask": mask[:, prompt:],
        "old_per_token_logps": logprobs[:, prompt:],
        "old_is_unknown": torch.tensor([[row.logprobs is None] for row in rows], device=device),
        "advantages": torch.tensor(advantages, dtype=torch.float32, device=device),
        "num_items_in_batch": torch.tensor(tokens, device=device),
    }
