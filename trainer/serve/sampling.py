"""Sampling of next tokens for all rows at once.

Invariant: a sample is a function of (logits, temperature, top_p, seed, number of the token in its completion),
whatever else is in the batch: the uniform number comes from a hash of seed and token number instead of from a
generator's state."""

import numpy as np
import torch

GREEDY_BELOW = 1e-5
"""The limit of vLLM: logits overflow if they are divided by a smaller temperature."""

_MASK = (1 << 64) - 1


def _mix(x: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64 on uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uniforms(seeds: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """float64 in [0, 1) for pairs of (seed, token number), both uint64 arrays of one shape."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        state = _mix(_mix(seeds + golden) + (numbers + np.uint64(1)) * golden)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def seed64(seed: int) -> int:
    """Any integer as the 64 bits that `uniforms` takes."""
    return seed & _MASK


def sample(
    logits: torch.Tensor,
    *,
    temperature: np.ndarray,
    top_p: np.ndarray,
    uniform: np.ndarray,
) -> tuple[list[int], list[float]]:
    """Draws one token a row. logits [rows, vocabulary]; the arrays hold one value a row; a temperature below
    GREEDY_BELOW takes the most likely token. Returns token ids and their log-probs in nats, at temperature 1 without
    top-p."""
    logprobs = logits.log_softmax(-1)
    greedy = temperature < GREEDY_BELOW
    if greedy.all():
        tokens = logits.argmax(-1)
    else:
        if (temperature == 1).all():
            probabilities = logprobs.exp()
        else:
            divisor = torch.from_numpy(np.where(greedy, 1.0, temperature).astype(np.float32))
            probabilities = (logits / divisor[:, None]).softmax(-1)
        if (top_p < 1).any():
            probabilities = _nucleus(probabilities, torch.from_numpy(top_p.astype(np.float32)))
        cumulative = probabilities.cumsum(-1)
        total = cumulative[:, -1:].contiguous()
        target = torch.from_numpy(uniform.astype(np.float32))[:, None] * total
        # Rounding can lift the target to the total: the last token that has any probability is the limit.
        last = torch.searchsorted(cumulative, total)
        tokens = torch.minimum(torch.searchsorted(cumulative, target, right=True), last)[:, 0]
        tokens = tokens.clamp(max=logits.shape[1] - 1)  # a row that is not finite has none
        if greedy.any():
            tokens = torch.where(torch.from_numpy(greedy), logits.argmax(-1), tokens)
    chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
    return tokens.tolist(), chosen.tolist()


def likeliest(logits: torch.Tensor, count: int) -> list[tuple[int, float]]:
    """Returns the `count` most likely ids of one row of logits with their log-probs in nats, the likeliest first."""
    found = logits.log_softmax(-1).topk(min(count, logits.shape[-1]))
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))


def _nucleus(probabilities: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Zeroes what is outside the smallest set of tokens with at least top_p of the probability; keeps at least one."""
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    kept = torch.where((before < top_p[:, None]) | (before == 0), ordered, 0.0)
    return torch.zeros_like(probabilities).scatter(-1, order, kept)
