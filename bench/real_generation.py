"""Rollouts of one adapter of a real model: the embedded server's engine beside transformers' own generation.

Invariant: both sides sample the same number of tokens after the same prompts, and take turns in one process."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.optimizer_step import Seconds

GROUPS, GROUP_SIZE, SAMPLED = 4, 8, 64


def prompts_of(vocabulary: int) -> list[list[int]]:
    """The same random ids every time."""
    generator = random.Random(5)
    return [generator.choices(range(100, vocabulary), k=generator.randint(30, 80)) for _ in range(GROUPS)]


def timed(work: Callable[[], int]) -> tuple[int, Seconds]:
    """What the work returns; its seconds on the clock and of the processor."""
    began = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - began[0], time.process_time() - began[1])


def generation(model: Path, adapter: Path, rounds: int, threads: int) -> dict[str, list[Seconds]]:
    """Rollouts of one adapter, both sides on the same prompts: seconds of every round, by side."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from trainer.serve.engine import Engine
    from trainer.serve.messages import GenerationRequest

    engine = Engine(model, max_batch=64, threads=threads, prefix_cache_mb=256)
    engine.registry.load("adapter", str(adapter))
    engine.start()
    plain = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), adapter).eval()
    prompts = prompts_of(plain.config.vocab_size)
    width = max(map(len, prompts))
    rows = [prompt for prompt in prompts for _ in range(GROUP_SIZE)]
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    # Turns that end early would make the sides' work unequal: both sample all tokens.
    plain.generation_config.eos_token_id = None
    engine._batch._eos = frozenset()

    def ours(seed: int) -> int:
        tokens: list[int] = []
        done = threading.Semaphore(0)

        def finished(outcome: Any) -> None:
            tokens.append(len(outcome.token_ids))
            done.release()

        for number, row in enumerate(rows):
            engine.submit(GenerationRequest(row, "adapter", SAMPLED, seed=1000 * seed + number), finished)
        for _ in rows:
            done.acquire()
        return sum(tokens)

    def theirs(_seed: int) -> int:
        with torch.inference_mode():
            out = plain.generate(input_ids=ids, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=SAMPLED)
        return (out.shape[1] - width) * len(rows)

    times: dict[str, list[Seconds]] = {"ours": [], "transformers": []}
    for number in range(rounds + 1):  # the first one warms up
        for side, work in (("ours", ours), ("transformers", theirs)):
            tokens, seconds = timed(functools.partial(work, number))
            assert tokens == SAMPLED * len(rows)
            times[side].append(seconds)
    engine.stop(10)
    return {side: found[1:] for side, found in times.items()}
