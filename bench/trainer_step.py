"""One optimizer step of `trainer train` against bare TRL's on the same batch, alternating in one process.

    python bench/trainer_step.py [--model models/base] [--rounds 4] [--steps 3] [--constant 0]

Ours is all of a step: adapter written, request and answer, batch file read and checked, gradient, metrics line. Bare
TRL is a GRPOTrainer whose rollout_func returns the same batch from memory. Neither writes checkpoints. Prints one
JSON object: medians of the seconds from one step's end to the next one's, on the clock and of the processor, and
their ratios (the goal is at most 1.1)."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.train import set_threads
from trainer.train.channel import Channel
from trainer.train.job import Job, parse_job

GROUPS, GROUP_SIZE = 4, 16
TARGETS = ["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"]


def make_batch(tasks: list[str], *, vocabulary: int, constant: int) -> dict[str, Any]:
    """Multi-turn rollouts: a prompt of 150-220 random tokens per task, 2-6 turns of 8-16 sampled and 6-30 given ones.

    The first `constant` groups have one reward only."""
    ids = range(vocabulary)
    generator = random.Random(5)
    groups = []
    for index, task in enumerate(tasks):
        prompt = generator.choices(ids, k=generator.randint(150, 220))
        rollouts = []
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
            rollouts.append({"rows": [row], "reward": 1.0 if index < constant else generator.random()})
        groups.append({"task": task, "rollouts": rollouts})
    return {"groups": groups}


class InstantWorker:
    """Answers every request with the same rollouts, in the order asked for, from files that are written beforehand."""

    def __init__(self, folder: Path, batch: dict[str, Any], orders: set[tuple[str, ...]]) -> None:
        self.line = ""
        self.files = {}
        by_task = {group["task"]: group for group in batch["groups"]}
        for order in orders:
            self.files[order] = folder / f"{'-'.join(order)}.json"
            self.files[order].write_text(json.dumps({"groups": [by_task[task] for task in order]}))

    def write(self, line: str) -> None:
        self.line = line

    def flush(self) -> None:
        pass

    def readline(self) -> str:
        request = json.loads(self.line)
        file = self.files[tuple(request["tasks"])]
        return json.dumps({"type": "rollouts", "id": request["id"], "file": str(file)}) + "\n"


def bare_trl(job: Job, output: Path, batch: dict[str, Any]) -> Any:
    """TRL's own trainer with the job's settings; the rollouts come from memory."""
    from datasets import Dataset
    from transformers import AutoTokenizer
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

    from trainer.train.model import build_model
    from trainer.train.run import grpo_config

    rollouts = [rollout for group in batch["groups"] for rollout in group["rollouts"]]
    rows = [rollout["rows"][0] for rollout in rollouts]
    answer = {
        "prompt_ids": [row["prompt_ids"] for row in rows],
        "completion_ids": [row["completion_ids"] for row in rows],
        "logprobs": [row["logprobs"] for row in rows],
        "given": [rollout["reward"] for rollout in rollouts],
    }
    masks = [row["mask"] for row in rows]
    trainer = GRPOTrainer(
        model=build_model(job),
        args=grpo_config(job, output, save_strategy="no"),
        train_dataset=Dataset.from_dict({"prompt": job.tasks * job.steps}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        reward_funcs=lambda given, **_: given,
        rollout_func=lambda prompts, trainer: {**answer, "env_mask": masks},
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def seconds_per_step(trainer: Any) -> list[tuple[float, float]]:
    """(Wall seconds, processor seconds) from the end of a step to the end of the next; the first step warms up."""
    from transformers import TrainerCallback

    ends: list[tuple[float, float]] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append((time.perf_counter(), time.process_time()))

    trainer.add_callback(Clock())
    trainer.train()
    return [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(ends)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="models/base", help="model folder (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3, help="steps a round and side")
    parser.add_argument("--constant", type=int, default=0, help=f"groups of {GROUPS} with one reward only")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    set_threads(options.threads)
    from trainer.train.run import make_trainer

    times: dict[str, list[tuple[float, float]]] = {"ours": [], "bare_trl": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = [f"s{index}" for index in range(GROUPS)]
        job = parse_job(
            {
                "base_model": options.model,
                "output_dir": str(folder / "out"),
                "seed": 1,
                "tasks": tasks,
                "steps": options.steps + 1,
                "groups_per_step": GROUPS,
                "group_size": GROUP_SIZE,
                "lora": {"r": 16, "alpha": 16, "dropout": 0, "target_modules": TARGETS},
                "init_adapter": None,
                "learning_rate": 0.002,
                "max_grad_norm": 1.0,
                "clip": 0.2,
                "loss": "grpo",
                "kl": 0,
                "temperature": 1,
                "advantage": "group",
                "checkpoint_every": options.steps + 2,
                "threads": options.threads,
                "dtype": "float32",
                "tokens_per_forward": 4096,
                "gradient_checkpointing": False,
            }
        )
        import torch

        torch.set_num_threads(options.threads)
        vocabulary = json.loads((Path(options.model) / "config.json").read_text())["vocab_size"]
        batch = make_batch(tasks, vocabulary=vocabulary, constant=options.constant)
        for round_number in range(options.rounds):
            output = folder / f"round-{round_number}"
            output.mkdir()
            worker = InstantWorker(output, batch, set(itertools.permutations(tasks)))
            times["ours"] += seconds_per_step(make_trainer(job, output, Channel(worker, worker)))
            times["bare_trl"] += seconds_per_step(bare_trl(job, output, batch))
    (ours, ours_cpu), (bare, bare_cpu) = (
        [statistics.median(column) for column in zip(*times[side], strict=True)] for side in ("ours", "bare_trl")
    )
    tokens = sum(
        len(row["prompt_ids"]) + len(row["completion_ids"])
        for group in batch["groups"]
        for rollout in group["rollouts"]
        for row in rollout["rows"]
    )
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
