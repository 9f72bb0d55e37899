"""One optimizer step of `trainer train` against bare TRL's on the same batch, alternating in one process.

    python bench/trainer_step.py [--model models/base] [--rounds 4] [--steps 3] [--constant 0]

Ours is all of a step: adapter written, request and answer, batch file read and checked, gradient, metrics line. Bare
TRL is a GRPOTrainer whose rollout_func returns the same batch from memory. Neither writes checkpoints. Prints one
JSON object: medians of the seconds from one step's end to the next one's, on the clock and of the processor, and
their ratios (the goal is at most 1.1)."""

from __future__ import annotations

import argparse
import gc
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

from trainer.train.channel import Channel
from trainer.train.job import Job, set_threads

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


def step_job(model: Path, folder: Path, *, tasks: list[str], steps: int, threads: int) -> Job:
    """Returns a job of one warm-up step and `steps` measured ones, each over all `tasks`, without checkpoints."""
    return Job.model_validate(
        {
            "base_model": str(model),
            "output_dir": str(folder / "out"),
            "seed": 1,
            "processes": 1,
            "shard_base": False,
            "tasks": tasks,
            "steps": steps + 1,
            "groups_per_step": len(tasks),
            "lora": {"r": 16, "alpha": 16, "dropout": 0, "target_modules": TARGETS},
            "max_grad_norm": 1.0,
            "clip": 0.2,
            "delta": 4.0,
            "importance_sampling_clip_max": None,
            "off_policy_mask_threshold": 0.5,
            "max_logprob_gap": 1e3,
            "kl": 0,
            "temperature": 1,
            "steps_ahead": 0,
            "advantage": "group",
            "checkpoint_every": steps + 2,
            "dtype": "float32",
            "gradient_checkpointing": False,
            "report_to": "none",
            "group_size": GROUP_SIZE,
            "learning_rate": 0.002,
            "threads": threads,
            "tokens_per_forward": 4096,
        }
    )


def in_turns(
    job: Job, folder: Path, batch: list[dict[str, Any]], *, rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Returns wall and processor seconds of every step of each side."""
    from trainer.train.grpo import make_trainer

    times: dict[str, list[tuple[float, float]]] = {"ours": [], "bare_trl": []}
    for number in range(rounds):
        output = folder / f"round-{number}"
        output.mkdir()
        worker = InstantWorker(output, batch, set(itertools.permutations(job.tasks)))
        given = job.model_copy(update={"output_dir": str(output)})
        times["ours"] += seconds_per_step(make_trainer(given, Channel(worker, worker)))
        gc.collect()
        times["bare_trl"] += seconds_per_step(bare_trl(given, batch))
        gc.collect()
    return times


class InstantWorker:
    """Answers every request with the same rollouts, in the requested order, from files written in advance."""

    def __init__(self, folder: Path, batch: list[dict[str, Any]], orders: set[tuple[str, ...]]) -> None:
        self.line = ""
        self.files = {}
        for order in orders:
            self.files[order] = folder / f"{'-'.join(order)}.jsonl"
            lines = [f"{json.dumps(rollout)}\n" for task in order for rollout in batch if rollout["task"] == task]
            self.files[order].write_text("".join(lines))

    def write(self, line: str) -> None:
        self.line = line

    def flush(self) -> None:
        pass

    def readline(self) -> str:
        request = json.loads(self.line)
        file = self.files[tuple(request["tasks"])]
        return json.dumps({"type": "rollouts", "id": request["id"], "file": str(file)}) + "\n"


def bare_trl(job: Job, batch: list[dict[str, Any]]) -> Any:
    """TRL's own trainer with the job's settings; the rollouts come from memory."""
    from datasets import Dataset
    from transformers import AutoTokenizer
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

    from trainer.train.grpo import grpo_config
    from trainer.train.model import build_model

    rows = [rollout["rows"][0] for rollout in batch]
    answer = {
        "prompt_ids": [row["prompt_ids"] for row in rows],
        "completion_ids": [row["completion_ids"] for row in rows],
        "logprobs": [row["logprobs"] for row in rows],
        "given": [rollout["reward"] for rollout in batch],
    }
    masks = [row["mask"] for row in rows]
    trainer = GRPOTrainer(
        model=build_model(job),
        args=grpo_config(job, save_strategy="no"),
        train_dataset=Dataset.from_dict({"prompt": job.tasks * job.steps}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        reward_funcs=lambda given, **_: given,
        rollout_func=lambda prompts, trainer: {**answer, "env_mask": masks},
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def seconds_per_step(trainer: Any) -> list[tuple[float, float]]:
    """Returns wall and processor seconds between the ends of consecutive steps; the first step warms up."""
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
        job = step_job(options.model, folder, tasks=tasks, steps=options.steps, threads=options.threads)
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
