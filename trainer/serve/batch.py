"""Continuous batching over the rows of one model.

Invariants: owned by one thread, but for a request's flag `cancelled`; a request joins between two steps and leaves when
it is finished, and its `on_done` is called exactly once. A step feeds every running row its next tokens: a prompt (or a
part of one), or the last sample."""

import logging
import math
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from trainer.serve.adapters import Adapter
from trainer.serve.messages import GenerationRequest, Outcome, RequestError
from trainer.serve.packed import ModelRunner, Segment
from trainer.serve.sampling import likeliest, sample, seed64, uniforms
from trainer.serve.state import Key, PrefixCache, key_of

log = logging.getLogger(__name__)

# Prompt tokens of one step, over all rows: bounds how long a long prompt keeps the others from their next token.
PREFILL_TOKENS = 2048
# Memory for keys and values of all rows; other requests wait. A longer conversation has it alone.
STATE_BYTES = 2_000_000_000
# A shared prefix shorter than this is cheaper to compute again than to store.
SHORTEST_SHARED = 16


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
            log.exception("the receiver of a finished request failed")


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


class Batch:
    """The running and the waiting requests of one model."""

    def __init__(self, runner: ModelRunner, *, cache: PrefixCache) -> None:
        self.cache = cache
        self._runner = runner
        self._eos = runner.eos
        self._waiting: deque[Generation] = deque()
        self._rows: list[Row | None] = [None] * runner.slots

    @property
    def requests(self) -> int:
        """Requests in the batch or waiting for a row."""
        return len(self._waiting) + len(self._rows) - self._rows.count(None)

    def add(self, generation: Generation) -> None:
        """Queues a request."""
        self._waiting.append(generation)

    def fail_all(self, error: RequestError) -> None:
        """Ends all requests with an error."""
        for row in [row for row in self._rows if row is not None]:
            self._leave(row, error)
        while self._waiting:
            self._waiting.popleft().done(error)

    def step(self) -> None:
        """Admits, feeds and samples once."""
        self._drop_cancelled()
        self._admit()
        rows = self._scheduled()
        if not rows:
            return
        batch = [row for row, _ in rows]
        segments = [Segment(row.slot, row.fed, row.tokens[row.fed : row.fed + n]) for row, n in rows]
        logits = self._runner.forward(segments, [row.generation.adapter for row in batch])
        for row, count in rows:
            row.fed += count
        ready = [i for i, row in enumerate(batch) if row.fed == len(row.tokens)]
        if ready:
            self._extend([batch[i] for i in ready], logits if len(ready) == len(batch) else logits[ready])
        for row in batch:
            if row.prefix_ends and row.fed == row.prefix_ends[0]:
                self.cache.put(row.prefix_key(), self._runner.pool.save(row.slot, row.fed))
                row.prefix_ends.pop(0)

    def _drop_cancelled(self) -> None:
        for row in [row for row in self._rows if row is not None and row.generation.cancelled]:
            self._runner.pool.wipe(row.slot, len(row.tokens))  # its values may not be finite
            self._leave(row, RequestError("cancelled"))
        for generation in [g for g in self._waiting if g.cancelled]:
            self._waiting.remove(generation)
            generation.done(RequestError("cancelled"))

    def _admit(self) -> None:
        """Moves waiting requests into free slots, but holds back those whose prefix a running row is computing right
        now: the rollouts of a task arrive together and have their prompt in common."""
        if not self._waiting or None not in self._rows:
            return
        free = [slot for slot, row in enumerate(self._rows) if row is None]
        computing = {row.prefix_key() for row in self._rows if row is not None} - {None}
        held: list[Generation] = []
        while self._waiting and free:
            generation = self._waiting.popleft()
            if not self._has_room(generation, free[0]):
                held.append(generation)
                break  # shorter ones would pass it again and again
            if generation.waits_for in computing:
                held.append(generation)
                continue
            prompt = generation.request.prompt
            snapshot = self.cache.longest(generation.key, below=len(prompt))
            start = 0 if snapshot is None else snapshot.length
            row = Row(generation, free[0], list(prompt), start, start, self._prefix_ends(generation, start))
            generation.waits_for = row.prefix_key()
            if generation.waits_for in computing:
                held.append(generation)
                continue
            if row.prefix_ends:
                computing.add(generation.waits_for)
            self._rows[free.pop(0)] = row
            if snapshot is None:
                self._runner.pool.clear(row.slot)
            else:
                self._runner.pool.restore(row.slot, snapshot)
        self._waiting.extendleft(reversed(held))

    def _has_room(self, generation: Generation, slot: int) -> bool:
        """Returns True if the state of all rows fits into STATE_BYTES when the request takes this slot. The pool holds
        as many tokens for each row as the longest request can reach."""
        rows = [row for row in self._rows if row is not None]
        if not rows:
            return True
        requests = [generation.request, *(row.generation.request for row in rows)]
        longest = max(len(request.prompt) + request.max_tokens for request in requests)
        count = max(slot, *(row.slot for row in rows)) + 1
        return count * self._runner.pool.snapshot_bytes(longest) <= STATE_BYTES

    def _prefix_ends(self, generation: Generation, start: int) -> list[int]:
        """Returns the lengths at which a prompt's state is kept for other requests: after its first turn (the system's,
        the same in all tasks of an environment) and before its last token (the whole prompt of a task). A resumed
        conversation shares nothing new with others."""
        prompt = generation.request.prompt
        first_turn = next((i + 1 for i, token in enumerate(prompt) if token in self._eos), 0)
        if start > first_turn or not self.cache.keeps(generation.adapter):
            return []
        fits = self._runner.pool.snapshot_bytes
        return [
            end
            for end in sorted({first_turn, len(prompt) - 1})
            if start < end < len(prompt) and end >= SHORTEST_SHARED and fits(end) <= self.cache.limit
        ]

    def _scheduled(self) -> list[tuple[Row, int]]:
        """Rows and numbers of tokens to feed, in the order that PackedBatch asks for."""
        several, single, budget = [], [], PREFILL_TOKENS
        for row in self._rows:
            if row is None:
                continue
            count = min(row.due(), max(budget, 1))
            if count == 1:
                single.append((row, 1))
            else:
                budget -= count
                several.append((row, count))
        return several + single

    def _extend(self, rows: list[Row], logits: torch.Tensor) -> None:
        """Samples the next token of each row; finished rows leave."""
        generations = [row.generation for row in rows]
        numbers = np.array([len(row.logprobs) for row in rows], dtype=np.uint64)
        tokens, logprobs = sample(
            logits,
            temperature=np.array([g.request.temperature for g in generations]),
            top_p=np.array([g.request.top_p for g in generations]),
            uniform=uniforms(np.array([g.seed for g in generations], dtype=np.uint64), numbers),
        )
        for number, (row, token, logprob) in enumerate(zip(rows, tokens, logprobs, strict=True)):
            if not math.isfinite(logprob):
                model = row.generation.request.model
                self._runner.pool.wipe(row.slot, len(row.tokens))
                self._leave(
                    row, RequestError(f"model {model!r}: its log-probs are not finite; its weights are unusable")
                )
                continue
            row.tokens.append(token)
            row.logprobs.append(logprob)
            if count := row.generation.request.likeliest:
                row.likeliest.append(likeliest(logits[number], count))
            if token in self._eos:
                self._complete(row, "stop")
            elif len(row.logprobs) >= row.generation.request.max_tokens:
                self._complete(row, "length")

    def _complete(self, row: Row, reason: str) -> None:
        # The next turn's prompt begins with these tokens.
        key = key_of(row.generation.adapter, row.tokens[: row.fed])
        self.cache.put(key, self._runner.pool.save(row.slot, row.fed))
        prompt = len(row.generation.request.prompt)
        self._leave(row, Outcome(row.tokens[prompt:], row.logprobs, reason, row.cached, tuple(row.likeliest)))

    def _leave(self, row: Row, result: Outcome | RequestError) -> None:
        self._rows[row.slot] = None
        row.generation.done(result)
