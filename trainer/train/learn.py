"""Trains a LoRA from its first step, or the last whole checkpoint, to its end.

Invariants: for every end of the training (done, interrupted, failed rollouts, a bad batch), the state of the last
finished step is on disk before the worker is notified; a checkpoint is announced only under its final name, and a
failed write leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from transformers.utils import logging as transformers_logging

from trainer.command import BadInput

from .channel import Channel, Interrupted, ProtocolError, RolloutsFailed
from .checkpoint import only_trainer, policy_of, resume_point
from .curves import curve_callbacks
from .groups import tasks_of_all_steps
from .grpo import CapabilityTrainer, grpo_config
from .job import DamagedBatch, Job
from .model import build_model, needs_checkpointing
from .ranks import Ranks


def run(job: Job, channel: Channel) -> None:
    """Trains until done or interrupted and says so.

    Raises FolderBusy, BadInput, DamagedBatch, RolloutsFailed, ProtocolError or Diverged."""
    set_up(job)
    with only_trainer(job.output):
        step, checkpoint = resume_point(job)
        # checkpoint-0 follows from the job; if it were resumed, transformers would make one random draw twice.
        resumed = checkpoint if step > 0 else None
        trainer = make_trainer(job, channel, Ranks.start(job, resumed)) if step < job.steps else None
        for callback in curve_callbacks(job, step) if trainer else []:
            trainer.add_callback(callback)
        channel.send("ready", step=step)
        if checkpoint:  # again: the worker that was notified may have died since
            channel.send("checkpoint", step=step, policy=policy_of(checkpoint))
        if trainer:
            try:
                _train(trainer, resumed)
            except Interrupted:
                channel.send("interrupted", step=trainer.state.global_step)
                return
        shutil.rmtree(job.output / "weights", ignore_errors=True)
        channel.send("done", step=job.steps)


def set_up(job: Job) -> None:
    """Prepares this process before its model is loaded. Raises BadInput where it was given a GPU that is not there."""
    torch.set_num_threads(max(1, job.threads // job.processes))
    transformers_logging.disable_progress_bar()
    if torch.cuda.is_available():  # operations without a deterministic kernel are logged
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    elif given := os.environ.get("RANKS_DEVICES"):
        raise BadInput(f"CUDA_VISIBLE_DEVICES {given!r}: torch finds no GPU; see to driver and torch, or unset it")


def make_trainer(job: Job, channel: Channel | None, ranks: Ranks) -> CapabilityTrainer:
    """Model, data and TRL trainer of a job; at every step, rank 0 asks `channel` for its rollouts."""
    model = build_model(job)
    checkpoints = job.gradient_checkpointing or needs_checkpointing(model.config, job.tokens_per_forward)
    if checkpoints and not job.gradient_checkpointing:
        print("gradient checkpointing is on: activations would take over half of the free memory", file=sys.stderr)
    return CapabilityTrainer(
        model=model,
        args=grpo_config(job, gradient_checkpointing=checkpoints),
        train_dataset=Dataset.from_dict({"prompt": tasks_of_all_steps(job)}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        job=job,
        channel=channel,
        ranks=ranks,
    )


def _train(trainer: CapabilityTrainer, checkpoint: Path | None) -> None:
    """Trains on, and saves whatever ends it between two steps."""
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except (Interrupted, RolloutsFailed, ProtocolError, BadInput, DamagedBatch):
        trainer.save_checkpoint()
        raise
    trainer.save_checkpoint()
