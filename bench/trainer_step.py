"""One optimizer step of `trainer train` against bare TRL's on the same batch, alternating in one process.

    python bench/trainer_step.py [--model models/base]

Ours is all of a step: adapter written, request and answer, batch file read and checked, gradient, metrics line. Bare
TRL is a GRPOTrainer whose rollout_func returns the same batch from memory. Neither writes checkpoints. Prints one
JSON object: medians of the seconds from one step's end to the next one's, and their ratio (the goal is at most 1.1)."""

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
from unittest.mock import Mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.train.job import Job, set_threads

TASKS, GROUP_SIZE = ["s0", "s1", "s2", "s3"], 16
ROUNDS, STEPS, THREADS = 4, 3, 2


def make_batch(vocabulary: int) -> list[dict[str, Any]]:
    """Rollouts of several turns: a prompt of 150-220 random tokens per task, then 8-16 sampled tokens, and up to five
    times 6-30 given and 8-16 sampled ones."""
    generator = random.Random(5)
    rollouts = []
    for task in TASKS:
        prompt = generator.choices(range(vocabulary), k=generator.randint(150, 220))
        for _ in range(GROUP_SIZE):
            mask = [1] * generator.randint(8, 16)
            for _ in range(generator.randint(1, 5)):
                mask += [0] * generator.randint(6, 30) + [1] * generator.randint(8, 16)
            row = {
                "prompt_ids": prompt,
                "completion_ids": generator.choices(range(vocabulary), k=len(mask)),
                "logprobs": [-math.log(vocabulary) * own for own in mask],
                "mask": mask,
            }
            rollouts.append({"task": task, "rows": [row], "reward": generator.random()})
    return rollouts


def bare_trl(job: Job, batch: list[dict[str, Any]]) -> Any:
    """TRL's own trainer with the job's settings; the rollouts come from memory."""
    from datasets import Dataset
    from transformers import AutoTokenizer
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOTrainer

    from trainer.train.grpo import grpo_config
    from trainer.train.model import build_model

    rows = [rollout["rows"][0] for rollout in batch]
    answer = {name: [row[name] for row in rows] for name in ("prompt_ids", "completion_ids", "logprobs")}
    answer |= {"given": [rollout["reward"] for rollout in batch], "env_mask": [row["mask"] for row in rows]}
    trainer = GRPOTrainer(
        model=build_model(job),
        args=grpo_config(job, save_strategy="no"),
        train_dataset=Dataset.from_dict({"prompt": job.tasks * job.steps}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        reward_funcs=lambda given, **_: given,
        rollout_func=lambda prompts, trainer: answer,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def seconds_per_step(trainer: Any) -> list[float]:
    """Returns the seconds between the ends of consecutive steps; the first step warms up."""
    from transformers import TrainerCallback

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.perf_counter())

    trainer.add_callback(Clock())
    trainer.train()
    gc.collect()
    return [after - before for before, after in itertools.pairwise(ends)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/base"), help="model folder (default: %(default)s)")
    model = parser.parse_args().model
    set_threads(THREADS)
    import torch

    from trainer.model_folder import empty_model, lora_modules
    from trainer.tests.train_harness import as_lines, make_job, parse_job
    from trainer.train.learn import make_trainer
    from trainer.train.ranks import Ranks

    torch.set_num_threads(THREADS)
    targets = lora_modules(empty_model(str(model)), []).choices
    batch = make_batch(json.loads((model / "config.json").read_text())["vocab_size"])
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "batch.jsonl"
        file.write_text(as_lines(batch))
        channel = Mock()
        channel.ask.return_value = {"file": str(file), "tasks": TASKS}
        for number in range(ROUNDS):
            output = Path(name) / f"round-{number}"
            output.mkdir()
            settings = {"tasks": TASKS, "groups_per_step": len(TASKS), "group_size": GROUP_SIZE, "max_logprob_gap": 1e3}
            settings |= {"steps": STEPS + 1, "checkpoint_every": STEPS + 2, "learning_rate": 0.002}
            lora = {"r": 16, "alpha": 16, "dropout": 0, "target_modules": targets}
            job = parse_job(make_job(model, output, threads=THREADS, lora=lora, **settings))
            ours += seconds_per_step(make_trainer(job, channel, Ranks()))
            bare += seconds_per_step(bare_trl(job, batch))
    result = {
        "ours_seconds": round(statistics.median(ours), 4),
        "bare_trl_seconds": round(statistics.median(bare), 4),
        "ratio": round(statistics.median(ours) / statistics.median(bare), 3),
        "steps_each": len(ours),
        "rollouts": len(batch),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
