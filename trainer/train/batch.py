"""From the rows of a step to the inputs of the loss, in chunks. Invariant: ids, masks and log-probs are trained on as
they were recorded."""

from collections import Counter
from collections.abc import Sequence

import torch

from .groups import Batch
from .job import Row

FORWARD_COST = 100
"""Tokens that take as long as the overhead of a forward."""


def micro_batches(
    batch: Batch, *, tokens_per_forward: int, pad_id: int, device: torch.device, shares: bool = False
) -> list[dict[str, torch.Tensor]]:
    """Inputs for TRL's loss, in chunks of at most `tokens_per_forward` tokens.

    Rows are padded on the right only: what follows a token never reaches it in a causal model, so padding is exact.
    TRL's `prompt` is the part that all rows of the micro-batch have as prompt; the rest of longer prompts counts as
    unmasked completion. Each is normalised by the loss tokens of the whole batch, so that their losses add up to the
    batch's."""
    return [
        {
            **_pad([batch.rows[i] for i in chunk], [batch.advantages[i] for i in chunk], batch.tokens, pad_id, device),
            "row_numbers": torch.tensor(chunk),
        }
        for chunk in chunks(batch.rows, tokens_per_forward, shares=shares)
    ]


def chunks(rows: Sequence[Row], tokens: int, *, shares: bool = False) -> list[list[int]]:
    """Indexes of rows of like length together, the longest first, each chunk at most so many padded tokens, or one row.
    `shares`: rows with a common prompt, which is computed once, are in chunks of their own."""
    prompts = [tuple(row.prompt_ids) if shares else () for row in rows]
    number = Counter(prompts)
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in sorted(range(len(rows)), key=lambda i: rows[i].length, reverse=True):
        groups.setdefault(prompts[index] if number[prompts[index]] > 1 else (), []).append(index)
    made: list[list[int]] = []
    for prompt, members in groups.items():
        width = longest = 0
        for left, index in zip(range(len(members), 0, -1), members, strict=True):
            own, chunk = rows[index].length - len(prompt), made[-1] if width else []
            is_full = len(prompt) + width * (len(chunk) + 1) > tokens or longest * (len(chunk) + 1) > 4 * tokens
            if not width or is_full or (width - own) * left > len(prompt) + FORWARD_COST:
                made.append([index])
                width, longest = own, rows[index].length
            else:
                chunk.append(index)
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
    logprobs = right([[0.0] * len(row.prompt_ids) + row.logprobs for row in rows], 0.0, torch.float32)
    return {
        "prompt_lengths": torch.tensor([len(row.prompt_ids) for row in rows], device=device),
        "prompt_ids": ids[:, :prompt],
        "prompt_mask": real[:, :prompt],
        "completion_ids": ids[:, prompt:],
        "completion_mask": real[:, prompt:],
        "tool_mask": mask[:, prompt:],
        "old_per_token_logps": logprobs[:, prompt:],
        "advantages": torch.tensor(advantages, dtype=torch.float32, device=device),
        "num_items_in_batch": torch.tensor(tokens, device=device),
    }
