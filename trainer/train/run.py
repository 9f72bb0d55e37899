"""One training on rollouts: the job's tasks step by step, each step's rollouts asked for under the weights as they are.

Invariant: which tasks a step asks for follows from the job and the step alone."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig

from .batch import Batch, training_batch
from .channel import Channel
from .grpo import CapabilityTrainer
from .job import Job
from .learn import common_settings, learn, telling
from .model import build_model
from .rollouts import read_groups
from .saving import save_adapter


def run(job: Job, channel: Channel) -> None:
    """Trains until done or interrupted and says so. Raises what `learn` does."""
    learn(job, channel, steps=job.steps, make=lambda output: make_trainer(job, output, channel))


def tasks_of_all_steps(job: Job) -> list[str]:
    """The tasks of every step in a row, `groups_per_step` each: the list as it is given, so that instances that belong
    together stay in one step, and then shuffled anew, again and again.

    No task comes twice in a step: what is left over of a pass is dropped."""
    generator = random.Random(job.seed)
    whole = len(job.tasks) - len(job.tasks) % job.groups_per_step
    drawn = job.tasks[:whole]
    while len(drawn) < job.steps * job.groups_per_step:
        drawn += generator.sample(job.tasks, whole)
    return drawn[: job.steps * job.groups_per_step]


def make_trainer(job: Job, output: Path, channel: Channel) -> CapabilityTrainer:
    """Model, data and TRL trainer of a job; the trainer's every step asks `channel` for its rollouts."""
    model = build_model(job)
    vocabulary = model.get_input_embeddings().num_embeddings

    def collect(step: int, tasks: list[str]) -> Batch:
        adapter = output / "weights" / f"step-{step}"
        for older in (output / "weights").glob("step-*"):
            shutil.rmtree(older)
        save_adapter(model, adapter)
        file = channel.ask_rollouts(step=step, tasks=tasks, group_size=job.group_size, adapter=adapter)
        groups = read_groups(file, tasks=tasks, group_size=job.group_size, vocabulary=vocabulary)
        return training_batch(groups, job.advantage)

    return CapabilityTrainer(
        model=model,
        args=grpo_config(job, output),
        train_dataset=Dataset.from_dict({"prompt": tasks_of_all_steps(job)}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        collect=collect,
        tokens_per_forward=job.tokens_per_forward,
        **telling(job, channel, output),
    )


def grpo_config(job: Job, output: Path, **changes: Any) -> GRPOConfig:
    """TRL's settings for a job: one optimizer step per rollout batch."""
    settings = {
        "per_device_train_batch_size": job.groups_per_step * job.group_size,
        "num_generations": job.group_size,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
        "shuffle_dataset": False,
        "loss_type": "dapo",  # the mean over the loss tokens of the batch
        "epsilon": job.clip,
        "beta": job.kl,
        "temperature": job.temperature,
    }
    return GRPOConfig(**{**common_settings(job, output, job.steps), **settings, **changes})
