"""
The generation thread: continuous batching over the rows of one model.

Invariants: one thread touches model, pool and prefix cache. A request joins between two steps, leaves when it is
finished, and its `on_done` is called exactly once. One step feeds every running row its next tokens: a prompt (or a
part of one), or the last sample.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from trainer.serve.adapters import Adapter
from trainer.serve.errors import RequestError, Unavailable
from trainer.serve.metrics import Metrics
from trainer.serve.packed import Segment
from trainer.serve.prefix_cache import Key, PrefixCache, key_of
from trainer.serve.runner import ModelRunner
from trainer.serve.sampling import sample, seed64, uniforms

log = logging.getLogger(__name__)

# Prompt tokens of one step, over all rows: bounds how long a long prompt keeps the others from their next token.
PREFILL_TOKENS = 2048
# A shared prefix shorter than this is cheaper to compute again than to store.
SHORTEST_SHARED = 16


@dataclass(frozen=True)
class Outcome:
    """
    What became of a request. `finish_reason` is stop or length; it is None when `error` says why there is no
    completion.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str | None
    cached_tokens: int = 0
    error: RequestError | None = None


@dataclass(eq=False)
class Generation:
    """A request to the engine. `max_tokens` must fit into the context behind the prompt."""

    prompt: list[int]
    adapter: Adapter | None
    max_tokens: int
    on_done: Callable[[Outcome], None]
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    cancelled: bool = False
    key: Key = field(init=False)
    waits_for: Key | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.key = key_of(self.adapter, self.prompt)
        self.seed = seed64(int.from_bytes(os.urandom(8), "little") if self.seed is None else self.seed)


@dataclass(eq=False)
class _Row:
    """
    A running request: `fed` of its tokens are in the pool's `slot`. Up to `goal` it computes a prefix that others may
    share.
    """

    request: Generation
    slot: int
    tokens: list[int]
    fed: int
    cached: int
    goals: list[int]
    logprobs: list[float] = field(default_factory=list)

    def heading(self) -> Key | None:
        return key_of(self.request.adapter, self.tokens[: self.goals[0]]) if self.goals else None

    def due(self) -> int:
        return (self.goals[0] if self.goals else len(self.tokens)) - self.fed


class Engine:
    """Serves `Generation`s until `stop`."""

    def __init__(
        self, runner: ModelRunner, *, eos: frozenset[int], metrics: Metrics, cache_bytes: int, threads: int
    ) -> None:
        self.metrics = metrics
        self.cache = PrefixCache(cache_bytes)
        self._runner = runner
        self._eos = eos
        self._threads = threads
        self._inbox: deque[Generation | Adapter] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._waiting: deque[Generation] = deque()
        self._rows: list[_Row | None] = [None] * runner.slots
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)

    def start(self) -> None:
        """Starts the generation thread."""
        self._thread.start()

    def submit(self, request: Generation) -> None:
        """Queues a request; `on_done` is called on the generation thread, or at once when the engine is stopping."""
        with self._wake:
            if not self._stopping:
                self._inbox.append(request)
                self._wake.notify()
                return
        request.on_done(_failed(Unavailable("the server is shutting down; send the request to another one")))

    def forget(self, adapter: Adapter) -> None:
        """Frees what is kept for an unloaded adapter; its running requests finish."""
        with self._wake:
            self._inbox.append(adapter)
            self._wake.notify()

    def stop(self) -> None:
        """Fails all requests with Unavailable and ends the thread. Returns at once."""
        with self._wake:
            self._stopping = True
            self._wake.notify()

    def alive(self) -> bool:
        """Whether requests can be served."""
        return self._thread.is_alive() and not self._stopping

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return sum(row is not None for row in self._rows)

    @property
    def waiting(self) -> int:
        """Requests that are not in the batch yet."""
        return len(self._waiting) + len(self._inbox)

    def _run(self) -> None:
        torch.set_num_threads(self._threads)
        while True:
            with self._wake:
                while not (self._inbox or self._waiting or self._stopping or self.running):
                    self._wake.wait()
                arrived = list(self._inbox)
                self._inbox.clear()
            for item in arrived:
                if isinstance(item, Adapter):
                    self.cache.forget(item)
                else:
                    self._waiting.append(item)
            if self._stopping:
                self._fail_all(Unavailable("the server is shutting down; send the request to another one"))
                return
            try:
                self._admit()
                self._step()
            except Exception as error:  # a failed step must not end the server
                log.exception("generation step failed")
                self._fail_all(RequestError(f"generation failed: {error!r}"))

    def _fail_all(self, error: RequestError) -> None:
        for row in [row for row in self._rows if row is not None]:
            self._finish(row, _failed(error))
        with self._wake:
            self._waiting.extend(item for item in self._inbox if isinstance(item, Generation))
            self._inbox.clear()
        while self._waiting:
            self._deliver(self._waiting.popleft(), _failed(error))

    def _admit(self) -> None:
        """
        Moves waiting requests into free slots, but holds back those whose prefix a running row is computing right now.
        """
        if not self._waiting:
            return
        free = [slot for slot, row in enumerate(self._rows) if row is None]
        heading = {row.heading() for row in self._rows if row is not None} - {None}
        held: list[Generation] = []
        while self._waiting and free:
            request = self._waiting.popleft()
            if request.cancelled:
                self._deliver(request, _failed(RequestError("cancelled")))
                continue
            if request.waits_for in heading:
                held.append(request)
                continue
            snapshot = self.cache.longest(request.key, below=len(request.prompt))
            start = 0 if snapshot is None else snapshot.length
            row = _Row(request, free[0], list(request.prompt), start, start, self._goals(request.prompt, start))
            request.waits_for = row.heading()
            if request.waits_for in heading:
                held.append(request)
                continue
            if row.goals:
                heading.add(request.waits_for)
            free.pop(0)
            self._rows[row.slot] = row
            if snapshot is None:
                self._runner.pool.clear(row.slot)
            else:
                self._runner.pool.restore(row.slot, snapshot)
        self._waiting.extendleft(reversed(held))

    def _goals(self, prompt: list[int], start: int) -> list[int]:
        """
        Where a prompt's state is stored for others: after its first turn (the system's, the same in all tasks of an
        environment) and before its last token (rollouts of one task have the whole prompt in common). A resumed
        conversation shares nothing new.
        """
        first_turn = next((i + 1 for i, token in enumerate(prompt) if token in self._eos), 0)
        if start > first_turn > 0 or (start > 0 and first_turn == 0):
            return []
        goals = sorted({first_turn, len(prompt) - 1})
        fits = self._runner.pool.snapshot_bytes
        return [g for g in goals if start < g < len(prompt) and g >= SHORTEST_SHARED and fits(g) <= self.cache.limit]

    def _step(self) -> None:
        for row in [row for row in self._rows if row is not None and row.request.cancelled]:
            self._finish(row, _failed(RequestError("cancelled")))
        rows = self._scheduled()
        if not rows:
            return
        began = time.perf_counter()
        counts = [count for _, count in rows]
        batch = [row for row, _ in rows]
        segments = [Segment(r.slot, r.fed, r.tokens[r.fed : r.fed + n]) for r, n in rows]
        logits = self._runner.forward(segments, [row.request.adapter for row in batch])
        for row, count in rows:
            row.fed += count
        ready = [i for i, row in enumerate(batch) if row.fed == len(row.tokens)]
        if ready:
            self._extend([batch[i] for i in ready], logits if len(ready) == len(batch) else logits[ready])
        for row in batch:
            if row.goals and row.fed == row.goals[0]:
                self.cache.put(row.heading(), self._runner.pool.save(row.slot, row.fed))
                row.goals.pop(0)
        self.metrics.steps += 1
        self.metrics.step_rows += len(rows)
        self.metrics.step_tokens += sum(counts)
        self.metrics.step_seconds += time.perf_counter() - began

    def _scheduled(self) -> list[tuple[_Row, int]]:
        """Rows and numbers of tokens to feed, in the order that PackedBatch asks for."""
        several, single, budget = [], [], PREFILL_TOKENS
        for row in self._rows:
            if row is None:
                continue
            due = row.due()
            if due == 1:
                single.append((row, 1))
            elif budget:
                count = min(due, budget)
                budget -= count
                (several if count > 1 else single).append((row, count))
        return several + single

    def _extend(self, rows: list[_Row], logits: torch.Tensor) -> None:
        """Samples the next token of each row and finishes the rows that are done."""
        requests = [row.request for row in rows]
        numbers = np.array([len(row.logprobs) for row in rows], dtype=np.uint64)
        tokens, logprobs = sample(
            logits,
            temperature=np.array([r.temperature for r in requests]),
            top_p=np.array([r.top_p for r in requests]),
            uniform=uniforms(np.array([r.seed for r in requests], dtype=np.uint64), numbers),
        )
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            if not math.isfinite(logprob):
                name = row.request.adapter.name if row.request.adapter else "the base model"
                self._finish(
                    row, _failed(RequestError(f"{name} gives values that are not finite; its weights are unusable"))
                )
                continue
            row.tokens.append(token)
            row.logprobs.append(logprob)
            if token in self._eos:
                self._finish(row, self._outcome(row, "stop"))
            elif len(row.logprobs) >= row.request.max_tokens:
                self._finish(row, self._outcome(row, "length"))

    def _outcome(self, row: _Row, reason: str) -> Outcome:
        if reason == "stop":  # the next turn's prompt begins with these tokens
            self.cache.put(
                key_of(row.request.adapter, row.tokens[: row.fed]), self._runner.pool.save(row.slot, row.fed)
            )
        prompt = len(row.request.prompt)
        self.metrics.prompt_tokens += prompt
        self.metrics.cached_tokens += row.cached
        self.metrics.completion_tokens += len(row.logprobs)
        return Outcome(row.tokens[prompt:], row.logprobs, reason, row.cached)

    def _finish(self, row: _Row, outcome: Outcome) -> None:
        self._rows[row.slot] = None
        self._deliver(row.request, outcome)

    def _deliver(self, request: Generation, outcome: Outcome) -> None:
        try:
            request.on_done(outcome)
        except Exception:  # whoever asked is gone; the others go on
            log.exception("nobody took a finished request")


def _failed(error: RequestError) -> Outcome:
    return Outcome([], [], None, error=error)
