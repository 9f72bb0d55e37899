"""One optimizer step of `trainer train` beside bare TRL's on the same batch: what the benches of it share.

Invariant: both sides get the same batch and the same settings; they take turns in one process, and neither writes
checkpoints. `set_threads` comes before torch is imported."""

from __future__ import annotations

import gc
import itertools
import json
import time
from pathlib import Path
from typing import Any

from trainer.train.channel import Channel
from trainer.train.job import Job

Seconds = tuple[float, float]
"""On the clock, and of the processor."""


def step_job(model: Path, folder: Path, *, tasks: list[str], steps: int, targets: list[str], **fields: Any) -> Job:
    """So many measured steps, after one that warms up, of all `tasks` each; no checkpoint."""
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
            "lora": {"r": 16, "alpha": 16, "dropout": 0, "target_modules": targets},
            "init_adapter": None,
            "max_grad_norm": 1.0,
            "clip": 0.2,
            "delta": 4.0,
            "importance_sampling_clip_max": None,
            "off_policy_mask_threshold": 0.5,
            "max_logprob_gap": 1e3,
            "loss": "grpo",
            "kl": 0,
            "temperature": 1,
            "steps_ahead": 0,
            "advantage": "group",
            "checkpoint_every": steps + 2,
            "dtype": "float32",
            "gradient_checkpointing": False,
            **fields,
        }
    )


def in_turns(job: Job, folder: Path, batch: list[dict[str, Any]], *, rounds: int) -> dict[str, list[Seconds]]:
    """Seconds of every step, by side."""
    from trainer.train.grpo import make_trainer

    times: dict[str, list[Seconds]] = {"ours": [], "bare_trl": []}
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
    """Answers every request with the same rollouts, in the order asked for, from files that are written beforehand."""

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


def seconds_per_step(trainer: Any) -> list[Seconds]:
    """From the end of a step to the end of the next; the first step warms up."""
    from transformers import TrainerCallback

    ends: list[Seconds] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append((time.perf_counter(), time.process_time()))

    trainer.add_callback(Clock())
    trainer.train()
    return [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(ends)]
