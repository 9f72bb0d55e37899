"""A LoRA's way from its first step, or the last whole checkpoint, to its end.

Invariants: whatever ends the training (done, interrupted, failed rollouts, a bad batch), the state of the last finished
step is on disk before the worker hears of it; a checkpoint is known to nobody before it has its final name, and one
that could not be written leaves nothing behind."""

from __future__ import annotations

import copy
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback
from transformers.utils import logging as transformers_logging

from trainer.adapter_config import WEIGHTS
from trainer.command import BadInput

from .channel import Channel, Diverged, Interrupted, ProtocolError, RolloutsFailed
from .checkpoint import (
    append_metrics,
    is_whole,
    new_checkpoint,
    only_trainer,
    partial_dir,
    policy_of,
    resume_point,
)
from .curves import curve_callbacks
from .job import DamagedBatch, Job


def learn(job: Job, channel: Channel, make: Callable[[Path | None], TellsAndSaves]) -> None:
    """Trains until done or interrupted and says so. `make` is given the checkpoint that is gone on from.

    Raises FolderBusy, BadInput, DamagedBatch, RolloutsFailed, ProtocolError or Diverged."""
    set_up(job)
    output = job.output
    with only_trainer(output):
        step, checkpoint = resume_point(job)
        # What checkpoint-0 holds follows from the job, and resuming it, transformers would make one draw twice.
        resumed = checkpoint if step > 0 else None
        trainer = make(resumed) if step < job.steps else None
        for callback in curve_callbacks(job) if trainer else []:
            trainer.add_callback(callback)
        channel.send("ready", step=step)
        if checkpoint:  # once more: the worker that heard of it may have died since
            channel.send("checkpoint", step=step, policy=policy_of(checkpoint))
        if trainer:
            try:
                _train(trainer, resumed)
            except Interrupted:
                channel.send("interrupted", step=trainer.state.global_step)
                return
        shutil.rmtree(output / "weights", ignore_errors=True)
        channel.send("done", step=job.steps)


def set_up(job: Job) -> None:
    """Of this process, before its model is loaded. Raises BadInput where it was given a GPU that is not there."""
    torch.set_num_threads(max(1, job.threads // job.processes))
    transformers_logging.disable_progress_bar()
    if torch.cuda.is_available():  # what has no deterministic kernel says so in the log
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    elif given := os.environ.get("RANKS_DEVICES"):
        raise BadInput(f"CUDA_VISIBLE_DEVICES {given!r}: torch finds no GPU; see to driver and torch, or unset it")


def _train(trainer: TellsAndSaves, checkpoint: Path | None) -> None:
    """Trains on, and saves whatever ends it between two steps."""
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except (Interrupted, RolloutsFailed, ProtocolError, BadInput, DamagedBatch):
        trainer.save_checkpoint()
        raise
    trainer.save_checkpoint()


class TellsAndSaves:
    """Before one of TRL's trainers in the list of bases: finished steps are lines of metrics.jsonl and messages, and
    checkpoints are whole or not there."""

    leads = True
    """Whether this process tells and saves: of several that train together, one does."""

    def __init__(self, *, job: Job, channel: Channel, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.remove_callback(PrinterCallback)
        self.processing_class = None  # checkpoints hold no tokenizer
        self._job, self._channel, self._output = job, channel, job.output
        self._fingerprint = job.fingerprint()

    def metrics_of_step(self) -> dict[str, float]:
        """Of the step that has just been finished, beside loss, grad_norm and learning_rate."""
        raise NotImplementedError

    def divergence(self, name: str, value: float, step: int) -> Diverged:
        """Returns the error for a loss or gradient that is not finite."""
        raise NotImplementedError

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Reports a finished step."""
        if "grad_norm" not in logs:  # the summary at the end of training
            return
        step = self.state.global_step
        for name in ("loss", "grad_norm"):
            if not math.isfinite(logs[name]):
                raise self.divergence(name, logs[name], step)
        metrics = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")} | self.metrics_of_step()
        self._metrics["train"].clear()
        if not self.leads:
            return
        append_metrics(self._output, step, metrics)
        self._channel.send("step", step=step, metrics=metrics)
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, metrics)

    def save_checkpoint(self) -> None:
        """Saves the state of the last finished step, unless it is saved already."""
        if not is_whole(self._output / f"checkpoint-{self.state.global_step}"):
            self._save_checkpoint(self.model, None)

    def _save_checkpoint(self, model: torch.nn.Module, trial: None) -> None:
        if not self.leads:
            return
        with new_checkpoint(self._output, self.state.global_step, fingerprint=self._fingerprint) as (_, final):
            Trainer._save_checkpoint(self, model, trial)  # not TRL's, which writes a model card as well
        self._channel.send("checkpoint", step=self.state.global_step, policy=policy_of(final))

    def _get_output_dir(self, trial: None) -> str:
        return str(partial_dir(self._output))

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        save_adapter(self.model, Path(output_dir or self._output))


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the LoRA as a PEFT folder: adapter_config.json and adapter_model.safetensors, nothing else. The same LoRA,
    the same bytes: rollouts are known by them."""
    from peft import get_peft_model_state_dict

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    config = copy.copy(model.peft_config["default"])
    config.inference_mode = True
    if isinstance(config.target_modules, set):  # PEFT would list it in the order of this process
        config.target_modules = sorted(config.target_modules)
    if isinstance(config.target_parameters, set):
        config.target_parameters = sorted(config.target_parameters)
    config.save_pretrained(str(folder))
