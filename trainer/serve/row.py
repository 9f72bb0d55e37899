"""
A request while it waits (`Generation`) and while it runs (`Row`). Invariant: both belong to the generation thread,
but for the flag `cancelled`, which anybody may set.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.serve.adapters import Adapter
from trainer.serve.errors import RequestError
from trainer.serve.generation import GenerationRequest, Outcome
from trainer.serve.prefix_cache import Key, key_of
from trainer.serve.sampling import seed64

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Generation:
    """A request on its way through the batch. `cancelled` may be set from any thread."""

    request: GenerationRequest
    adapter: Adapter | None
    on_done: Callable[[Outcome | RequestError], None]
    cancelled: bool = False
    seed: int = field(init=False)
    key: Key = field(init=False)
    waits_for: Key | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        seed = self.request.seed
        self.seed = seed64(int.from_bytes(os.urandom(8), "little") if seed is None else seed)
        self.key = key_of(self.adapter, self.request.prompt)

    def done(self, result: Outcome | RequestError) -> None:
        """Hands the result over; a receiver that fails must not end the batch."""
        try:
            self.on_done(result)
        except Exception:
            log.exception("nobody took a finished request")


@dataclass(eq=False)
class Row:
    """A running request: `fed` of its tokens are in the pool's `slot`."""

    generation: Generation
    slot: int
    tokens: list[int]
    fed: int
    cached: int
    prefix_ends: list[int]
    """Lengths at which its prompt's state is kept for others, ascending; feeding stops at each."""
    logprobs: list[float] = field(default_factory=list)
    likeliest: list[list[tuple[int, float]]] = field(default_factory=list)

    def prefix_key(self) -> Key | None:
        """The shared prefix that this row is computing."""
        return key_of(self.generation.adapter, self.tokens[: self.prefix_ends[0]]) if self.prefix_ends else None

    def due(self) -> int:
        """Tokens that can be fed now."""
        return (self.prefix_ends[0] if self.prefix_ends else len(self.tokens)) - self.fed
