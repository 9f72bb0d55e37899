"""One optimizer step in terms that a Tinker server knows: the loss of trainer/train/grpo.py as a factor of each token.

Its gradient is the sum, over tokens, of (derivative of the loss by the token's log-prob) x (gradient of the log-prob).
The first factor follows from log-probs and advantages alone; it is what the server is sent as the token's advantage,
against its own log-probs, so that the ratio is 1 and nothing of clip, delta or masks is left to the server."""

from dataclasses import dataclass

import numpy as np

from trainer.train.groups import Batch
from trainer.train.job import Job


@dataclass(frozen=True)
class TokenFactors:
    """`factors`: of each row, one for each completion token, minus the loss's derivative by its log-prob. They add up
    over the tokens: the loss is their mean."""

    factors: list[np.ndarray]
    loss: float
    logprob_gap: float | None
    masked_rows: int


def token_factors(job: Job, batch: Batch, own: list[np.ndarray]) -> TokenFactors:
    """`own`: the trained policy's log-probs of each row's completion tokens."""
    factors, losses, gap, masked = [], 0.0, 0.0, 0
    for row, advantage, now in zip(batch.rows, batch.advantages, own, strict=True):
        wanted = np.array(row.mask, dtype=bool)
        sampled = now if row.logprobs is None else np.array(row.logprobs)
        gap += np.abs(now - sampled)[wanted].sum()
        kept = advantage >= 0 or (sampled - now)[wanted].mean() <= job.off_policy_mask_threshold
        masked += not kept
        # What carries no loss may have any log-prob.
        ratio = np.exp(np.where(wanted, now - sampled, 0.0))
        if job.importance_sampling_clip_max is not None:
            factor = np.minimum(ratio, job.importance_sampling_clip_max) * advantage
            loss = -factor
        else:
            bounded, clipped = np.minimum(ratio, job.delta), np.clip(ratio, 1 - job.clip, 1 + job.clip)
            loss = -np.minimum(bounded * advantage, clipped * advantage)
            # The loss moves with the ratio where the smaller of the two is the ratio itself.
            is_ratio = (bounded == ratio) & (bounded * advantage <= clipped * advantage)
            factor = np.where(is_ratio, ratio * advantage, 0.0)
        active = wanted & kept
        factors.append(np.where(active, factor, 0.0))
        losses += loss[active].sum()
    tokens = max(batch.tokens, 1)
    known = batch.known_tokens
    return TokenFactors(
        factors=[factor / tokens for factor in factors],
        loss=losses / tokens,
        logprob_gap=gap / known if known else None,
        masked_rows=masked,
    )
