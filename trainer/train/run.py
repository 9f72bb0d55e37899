"""One training job from its first line to its last: model, resume, steps, end.

Invariant: whatever ends the training (done, interrupted, failed rollouts, a bad batch), the state of the last
finished step is on disk before the worker is told."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders; nothing is looked up

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from transformers.utils import logging as transformers_logging
from trl import GRPOConfig

from .batch import Batch, training_batch
from .channel import Channel, Interrupted, ProtocolError, RolloutsFailed, policy_of
from .checkpoint import fingerprint_of, last_whole, only_trainer
from .grpo import CapabilityTrainer, save_adapter
from .job import BadJob, Job
from .metrics import METRICS, append_metrics, cut_metrics
from .model import build_model
from .rollouts import DamagedBatch, read_groups


def run(job: Job, channel: Channel) -> None:
    """Trains until done or interrupted and says so. Raises FolderBusy, BadJob, DamagedBatch, RolloutsFailed,
    ProtocolError or Diverged."""
    torch.set_num_threads(job.threads)
    transformers_logging.disable_progress_bar()
    output = Path(job.output_dir).resolve()
    output.mkdir(parents=True, exist_ok=True)
    with only_trainer(output):
        _run(job, channel, output)


def _run(job: Job, channel: Channel, output: Path) -> None:
    step, checkpoint = last_whole(output)
    if checkpoint and fingerprint_of(checkpoint) != job.fingerprint():
        raise BadJob(f"output_dir {job.output_dir}: holds {checkpoint.name} of another job; name an empty folder")
    if step > job.steps:
        raise BadJob(f"steps {job.steps}: {checkpoint} is already past it; raise steps or name an empty folder")
    cut_metrics(output / METRICS, step)
    if step < job.steps:
        trainer = make_trainer(job, output, channel)
        _announce(channel, step, checkpoint)
        if not _train(trainer, checkpoint):
            channel.send({"type": "interrupted", "step": trainer.state.global_step})
            return
    else:
        _announce(channel, step, checkpoint)
    shutil.rmtree(output / "weights", ignore_errors=True)
    channel.send({"type": "done", "step": job.steps})


def _announce(channel: Channel, step: int, checkpoint: Path | None) -> None:
    """Says where it goes on. The checkpoint is told again: the worker that heard of it may have died since."""
    channel.send({"type": "ready", "step": step})
    if checkpoint:
        channel.send({"type": "checkpoint", "step": step, "policy": policy_of(checkpoint)})


def _train(trainer: CapabilityTrainer, checkpoint: Path | None) -> bool:
    """Trains to the end (True) or to an interruption (False), and saves."""
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except Interrupted:
        trainer.save_checkpoint()
        return False
    except (RolloutsFailed, ProtocolError, BadJob, DamagedBatch):
        trainer.save_checkpoint()
        raise
    trainer.save_checkpoint()
    return True


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
        return training_batch(
            read_groups(file, tasks=tasks, group_size=job.group_size, vocabulary=vocabulary), job.advantage
        )

    def on_step(step: int, metrics: dict[str, float]) -> None:
        append_metrics(output / METRICS, {"step": step, **metrics})
        channel.send({"type": "step", "step": step, "metrics": metrics})

    def on_checkpoint(step: int, folder: Path) -> None:
        channel.send({"type": "checkpoint", "step": step, "policy": policy_of(folder)})

    return CapabilityTrainer(
        model=model,
        args=grpo_config(job, output),
        train_dataset=Dataset.from_dict({"prompt": tasks_of_all_steps(job)}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        collect=collect,
        on_step=on_step,
        on_checkpoint=on_checkpoint,
        fingerprint=job.fingerprint(),
        tokens_per_forward=job.tokens_per_forward,
    )


def grpo_config(job: Job, output: Path, **changes: Any) -> GRPOConfig:
    """TRL's settings for a job: one optimizer step per rollout batch, constant learning rate."""
    settings = {
        "output_dir": str(output),
        "seed": job.seed,
        "max_steps": job.steps,
        "per_device_train_batch_size": job.groups_per_step * job.group_size,
        "num_generations": job.group_size,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
        "shuffle_dataset": False,
        "loss_type": "dapo",  # the mean over the loss tokens of the batch
        "epsilon": job.clip,
        "beta": job.kl,
        "temperature": job.temperature,
        "router_aux_loss_coef": 0.0,  # the method's loss has no load-balancing term
        "learning_rate": job.learning_rate,
        "lr_scheduler_type": "constant",
        "max_grad_norm": job.max_grad_norm,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": job.dtype == "bfloat16",
        "gradient_checkpointing": job.gradient_checkpointing,
        "save_steps": job.checkpoint_every,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    return GRPOConfig(**{**settings, **changes})
