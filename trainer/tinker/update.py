"""One optimizer step in terms that a Tinker server knows: the loss of trainer/train/grpo.py as a factor of each token.

Its gradient is the sum, over tokens, of (derivative of the loss by the token's log-prob) x (gradient of the log-prob).
The first factor follows from log-probs and advantages alone; it is what the server is sent as the token's advantage,
against its own log-probs, so that the ratio is 1 and nothing of clip, delta or masks is left to the server."""

import math
from dataclasses import dataclass

import numpy as np

from trainer.train.groups import Batch
from trainer.train.job import Job
from trainer.train.outliers import LOG_RATIO_LIMIT, NO_LOGPROB, Extreme, mean_gap


@dataclass(frozen=True)
class TokenFactors:
    """`factors` has one array per row with one value per completion token: minus the derivative of the loss by the
    token's log-prob. The loss is a mean over the tokens, so the factors add up."""

    factors: list[np.ndarray]
    loss: float
    logprob_gap: float | None
    masked_rows: int
    bounded_tokens: int
    extreme: Extreme


def token_factors(job: Job, batch: Batch, own: list[np.ndarray]) -> TokenFactors:
    """`own`: the trained policy's log-probs of each row's completion tokens."""
    factors, losses, gap, gap_tokens, masked, bounded_tokens = [], 0.0, 0.0, 0, 0, 0
    extreme = Extreme()
    for number, (row, advantage, now) in enumerate(zip(batch.rows, batch.advantages, own, strict=True)):
        wanted = np.array(row.mask, dtype=bool)
        reported = np.array(row.logprobs)
        is_known = wanted & (reported > NO_LOGPROB)
        distance = np.where(wanted, np.nan_to_num(np.abs(now - reported), nan=math.inf), 0.0)
        bounded_tokens += int((distance > LOG_RATIO_LIMIT).sum())
        within = is_known & (distance <= LOG_RATIO_LIMIT)
        gap, gap_tokens = gap + distance[within].sum(), gap_tokens + int(within.sum())
        distance = np.where(is_known | ~np.isfinite(now), distance, 0.0)
        if distance.max() > extreme.distance:
            token = int(distance.argmax())
            extreme = Extreme(distance.max(), number, token, now[token], reported[token])
        sampled = np.where(is_known, reported.clip(now - LOG_RATIO_LIMIT, now + LOG_RATIO_LIMIT), now)
        kept = advantage >= 0 or (sampled - now)[wanted].mean() <= job.off_policy_mask_threshold
        masked += not kept
        # Tokens without loss may have any log-prob.
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
        logprob_gap=mean_gap(gap, gap_tokens, known) if known else None,
        masked_rows=masked,
        bounded_tokens=bounded_tokens,
        extreme=extreme,
    )
