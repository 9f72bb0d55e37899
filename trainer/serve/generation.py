"""
What the front asks the generation process for and what it gets back. Invariant: imports nothing heavy, since the
front has no need of torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GenerationRequest:
    """One completion of `prompt`. `max_tokens` must fit into the context behind the prompt."""

    prompt: list[int]
    model: str
    """The base model's name or an adapter's."""
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    likeliest: int = 0
    """So many of the likeliest ids are told at every token."""


@dataclass(frozen=True)
class Outcome:
    """A finished completion: its ids, their log-probs in nats, and stop or length."""

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str
    cached_tokens: int
    likeliest: tuple[list[tuple[int, float]], ...] = ()
    """One list a token: ids and log-probs in nats, the likeliest first; empty where none were asked for."""


@dataclass(frozen=True)
class Ready:
    """The generation process serves requests; what the front must know of its model."""

    context: int
    eos: frozenset[int]
    base_id: str
