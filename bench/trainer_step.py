"""One optimizer step of `trainer train` against bare TRL's on the same batch, alternating in one process.

    python bench/trainer_step.py [--model models/base] [--rounds 4] [--steps 3] [--constant 0]

Ours is all of a step: adapter written, request and answer, batch file read and checked, gradient, metrics line. Bare
TRL is a GRPOTrainer whose rollout_func returns the same batch from memory. Neither writes checkpoints. Prints one
JSON object: medians of the seconds from one step's end to the next one's, on the clock and of the processor, and
their ratios (the goal is at most 1.1)."""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.optimizer_step import in_turns, step_job
from trainer.train.job import set_threads

GROUPS, GROUP_SIZE = 4, 16
TARGETS = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]


def make_batch(tasks: list[str], *, vocabulary: int, constant: int) -> list[dict[str, Any]]:
    """Multi-turn rollouts: a prompt of 150-220 random tokens per task, 2-6 turns of 8-16 sampled and 6-30 given ones.

    The first `constant` groups have one reward only."""
    ids = range(vocabulary)
    generator = random.Random(5)
    rollouts = []
    for index, task in enumerate(tasks):
        prompt = generator.choices(ids, k=generator.randint(150, 220))
        for _ in range(GROUP_SIZE):
            mask: list[int] = []
            for _ in range(generator.randint(2, 6)):
                mask += [1] * generator.randint(8, 16) + [0] * generator.randint(6, 30)
            while not mask[-1]:
                mask.pop()
            row = {
                "prompt_ids": prompt,
                "completion_ids": generator.choices(ids, k=len(mask)),
                "logprobs": [-math.log(vocabulary) * own for own in mask],
                "mask": mask,
            }
            reward = 1.0 if index < constant else generator.random()
            rollouts.append({"task": task, "rows": [row], "reward": reward})
    return rollouts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/base"), help="model folder (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3, help="steps a round and side")
    parser.add_argument("--constant", type=int, default=0, help=f"groups of {GROUPS} with one reward only")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    set_threads(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    tasks = [f"s{index}" for index in range(GROUPS)]
    vocabulary = json.loads((options.model / "config.json").read_text())["vocab_size"]
    batch = make_batch(tasks, vocabulary=vocabulary, constant=options.constant)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = step_job(
            options.model,
            folder,
            tasks=tasks,
            steps=options.steps,
            targets=TARGETS,
            group_size=GROUP_SIZE,
            learning_rate=0.002,
            threads=options.threads,
            tokens_per_forward=4096,
        )
        times = in_turns(job, folder, batch, rounds=options.rounds)
    (ours, ours_cpu), (bare, bare_cpu) = (
        [statistics.median(column) for column in zip(*times[side], strict=True)] for side in ("ours", "bare_trl")
    )
    tokens = sum(len(row["prompt_ids"]) + len(row["completion_ids"]) for rollout in batch for row in rollout["rows"])
    result = {
        "ours_seconds": round(ours, 4),
        "bare_trl_seconds": round(bare, 4),
        "ratio": round(ours / bare, 3),
        "ours_processor_seconds": round(ours_cpu, 4),
        "bare_trl_processor_seconds": round(bare_cpu, 4),
        "processor_ratio": round(ours_cpu / bare_cpu, 3),
        "steps_each": len(times["ours"]),
        "rollouts": GROUPS * GROUP_SIZE,
        "tokens": tokens,
        "constant_groups": options.constant,
        "threads": options.threads,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
