"""Bounds on differences of log-probs. Nothing here needs torch.

exp(difference) overflows a float32 beyond 88, and infinity times a masked 0 is NaN: one log-prob that a sampler reports
wrongly would end a training. So every difference that is exponentiated is bounded first."""

import math
from typing import NamedTuple

from .channel import Diverged

LOG_RATIO_LIMIT = 20.0
"""The largest difference between the trained policy's log-prob of a token and another one."""

NO_LOGPROB = -9999.0
"""vLLM reports this where it has no log-prob. The policy's own log-prob is used for such a token."""


def mean_gap(total: float, tokens: int, known: int) -> float:
    """Returns the mean difference to the sampler's log-probs. `total` is the sum over the `tokens` within the limit, of
    `known` in all: single outliers do not count, but where most tokens are outliers the mean is the limit."""
    return total / max(tokens, 1) if 2 * tokens >= known else LOG_RATIO_LIMIT


class Extreme(NamedTuple):
    """The loss token of a step whose log-probs differ most; `distance` is infinite where one of them is not finite."""

    distance: float = 0.0
    row: int = 0
    token: int = 0
    own: float = 0.0
    sampled: float = 0.0
    base: float = 0.0
    """0 where the loss has no KL term."""


def divergence(name: str, value: float, step: int, extreme: Extreme, rows: list[str]) -> Diverged:
    """Returns the error for a loss or gradient that is not finite. `rows` has the name of each row of the batch."""
    row = rows[extreme.row] if rows else f"row {extreme.row}"
    logprobs = f"{extreme.own:.4g}, the sampler's is {extreme.sampled:.4g}"
    if extreme.base != 0:
        logprobs += f", the base model's {extreme.base:.4g}"
    if math.isfinite(extreme.own) and math.isfinite(extreme.base) and extreme.distance > LOG_RATIO_LIMIT:
        advice = "check the log-probs that the policy server reports"
    elif step == 1:
        advice = "no update has been made yet: check base_model, or set dtype to float32"
    else:
        advice = "lower learning_rate"
    return Diverged(f"{name} {value} at step {step}: {row} token {extreme.token} has log-prob {logprobs}; {advice}")
