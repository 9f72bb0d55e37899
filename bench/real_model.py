"""A real model of 135 M parameters: generation against transformers' own, and an optimizer step against bare TRL's.

    python bench/real_model.py [--model .cache/smollm2-135m-instruct] [--rounds 3] [--parts generate,step]

The load is that of a small campaign: 4 prompts of 30 to 80 tokens, 8 rollouts each of up to 64 tokens at temperature 1,
one LoRA of rank 16 on all linear layers, float32. Sides alternate in one process. Prints one JSON object: medians of
seconds on the clock and of the processor, and ratios, ours to theirs (below 1 is faster)."""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.optimizer_step import Seconds, in_turns, step_job
from bench.real_generation import GROUP_SIZE, GROUPS, SAMPLED, generation, prompts_of
from trainer.train.job import set_threads

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def optimizer_step(model: Path, folder: Path, rounds: int, threads: int) -> dict[str, Any]:
    """A whole step of `trainer train` and of bare TRL, without the rollouts."""
    tasks = [f"s{index}" for index in range(GROUPS)]
    vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
    generator = random.Random(7)
    rollouts = []
    for task, prompt in zip(tasks, prompts_of(vocabulary), strict=True):
        completions = [
            generator.choices(range(100, vocabulary), k=generator.randint(SAMPLED // 3, SAMPLED))
            for _ in range(GROUP_SIZE)
        ]
        rollouts += [
            {
                "task": task,
                "rows": [
                    {
                        "prompt_ids": prompt,
                        "completion_ids": ids,
                        "logprobs": [-9.0] * len(ids),
                        "mask": [1] * len(ids),
                    }
                ],
                "reward": generator.random(),
            }
            for ids in completions
        ]
    job = step_job(
        model,
        folder,
        tasks=tasks,
        steps=2,
        targets=TARGETS,
        group_size=GROUP_SIZE,
        learning_rate=3e-4,
        threads=threads,
        tokens_per_forward=1024,
    )
    times = in_turns(job, folder, rollouts, rounds=rounds)
    rows = [rollout["rows"][0] for rollout in rollouts]
    sampled = sum(len(row["completion_ids"]) for row in rows)
    return {"rollouts": len(rows), "loss_tokens": sampled} | compared(times)


def compared(times: dict[str, list[Seconds]]) -> dict[str, Any]:
    """Medians by side, and the first side's to the second's."""
    medians = {
        side: [statistics.median(column) for column in zip(*found, strict=True)] for side, found in times.items()
    }
    (ours, ours_cpu), (theirs, theirs_cpu) = medians.values()
    return {
        "rounds": len(next(iter(times.values()))),
        "seconds": {side: round(found[0], 2) for side, found in medians.items()},
        "processor_seconds": {side: round(found[1], 2) for side, found in medians.items()},
        "ratio": round(ours / theirs, 3),
        "processor_ratio": round(ours_cpu / theirs_cpu, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(".cache/smollm2-135m-instruct"), metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", default="generate,step", help="which of generate, step to run")
    options = parser.parse_args()
    if not (options.model / "config.json").is_file():
        print(f"bench/real_model.py: no model in {options.model}; `make real-model` makes it", file=sys.stderr)
        raise SystemExit(1)
    set_threads(options.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers.utils import logging as transformers_logging

    from trainer.tests.conftest import save_adapter

    torch.set_num_threads(options.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    report: dict[str, Any] = {"model": options.model.name, "threads": options.threads, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "generate" in options.parts:
            adapter = save_adapter(
                folder / "adapter", options.model, seed=0, targets=TARGETS, rank=16, alpha=16, spread=0.003
            )
            times = generation(options.model, adapter, options.rounds, options.threads)
            report["generation"] = {"tokens": GROUPS * GROUP_SIZE * SAMPLED} | compared(times)
            gc.collect()
        if "step" in options.parts:
            report["step"] = optimizer_step(options.model, folder, options.rounds, options.threads)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
