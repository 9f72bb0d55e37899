"""A LoRA's way from its first step, or the last whole checkpoint, to its end, whatever it is trained on.

Invariant: whatever ends the training (done, interrupted, failed rollouts, a bad batch), the state of the last
finished step is on disk before the worker is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers.utils import logging as transformers_logging

from .channel import Channel, Interrupted, ProtocolError, RolloutsFailed, policy_of
from .checkpoint import fingerprint_of, last_whole, only_trainer
from .job import BadJob, LoraJob
from .metrics import METRICS, append_metrics, cut_metrics
from .rollouts import DamagedBatch


class Trainable(Protocol):
    """A trainer with saving.TellsAndSaves."""

    state: Any

    def train(self, *, resume_from_checkpoint: str | None) -> Any: ...

    def save_checkpoint(self) -> None: ...


def learn(job: LoraJob, channel: Channel, *, steps: int, make: Callable[[Path], Trainable]) -> None:
    """Trains until done or interrupted and says so; `make` is given the folder.

    Raises FolderBusy, BadJob, DamagedBatch, RolloutsFailed, ProtocolError or Diverged."""
    torch.set_num_threads(job.threads)
    transformers_logging.disable_progress_bar()
    output = Path(job.output_dir).resolve()
    output.mkdir(parents=True, exist_ok=True)
    with only_trainer(output):
        _learn(job, channel, output, steps, make)


def _learn(job: LoraJob, channel: Channel, output: Path, steps: int, make: Callable[[Path], Trainable]) -> None:
    step, checkpoint = last_whole(output)
    if checkpoint and fingerprint_of(checkpoint) != job.fingerprint():
        raise BadJob(f"output_dir {job.output_dir}: holds {checkpoint.name} of another job; name an empty folder")
    if step > steps:
        raise BadJob(f"steps {steps}: {checkpoint} is already past it; raise steps or name an empty folder")
    cut_metrics(output / METRICS, step)
    if step < steps:
        trainer = make(output)
        _announce(channel, step, checkpoint)
        # What checkpoint-0 holds follows from the job, and resuming it, transformers would make one draw twice.
        if not _train(trainer, checkpoint if step > 0 else None):
            channel.send({"type": "interrupted", "step": trainer.state.global_step})
            return
    else:
        _announce(channel, step, checkpoint)
    shutil.rmtree(output / "weights", ignore_errors=True)
    channel.send({"type": "done", "step": steps})


def _announce(channel: Channel, step: int, checkpoint: Path | None) -> None:
    """Says where it goes on. The checkpoint is told again: the worker that heard of it may have died since."""
    channel.send({"type": "ready", "step": step})
    if checkpoint:
        channel.send({"type": "checkpoint", "step": step, "policy": policy_of(checkpoint)})


def _train(trainer: Trainable, checkpoint: Path | None) -> bool:
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


def telling(job: LoraJob, channel: Channel, output: Path) -> dict[str, Any]:
    """What saving.TellsAndSaves is given: finished steps are lines of metrics.jsonl and messages."""

    def on_step(step: int, metrics: dict[str, float]) -> None:
        append_metrics(output / METRICS, {"step": step, **metrics})
        channel.send({"type": "step", "step": step, "metrics": metrics})

    def on_checkpoint(step: int, folder: Path) -> None:
        channel.send({"type": "checkpoint", "step": step, "policy": policy_of(folder)})

    return {"on_step": on_step, "on_checkpoint": on_checkpoint, "fingerprint": job.fingerprint()}


def common_settings(job: LoraJob, output: Path, steps: int) -> dict[str, Any]:
    """TRL's settings for a job: a constant learning rate, and nothing written or reported but by us."""
    return {
        "output_dir": str(output),
        "seed": job.seed,
        "max_steps": steps,
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
