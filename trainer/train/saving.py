"""What every trainer here has in common: finished steps are told, and checkpoints are whole or not there.

Invariant: a checkpoint is known to nobody before it has its final name, and one that could not be written leaves
nothing behind."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback

from .checkpoint import is_whole, partial_dir, publish

OnStep = Callable[[int, dict[str, float]], None]
OnCheckpoint = Callable[[int, Path], None]


class Diverged(RuntimeError):
    """The loss or its gradient is not finite; the last whole checkpoint is good."""


class TellsAndSaves:
    """Before one of TRL's trainers in the list of bases. `on_step` gets the finished steps and metrics,
    `on_checkpoint` their folder."""

    def __init__(self, *, on_step: OnStep, on_checkpoint: OnCheckpoint, fingerprint: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.remove_callback(PrinterCallback)
        self.processing_class = None  # checkpoints hold no tokenizer
        self._on_step = on_step
        self._on_checkpoint = on_checkpoint
        self._fingerprint = fingerprint

    def metrics_of_step(self) -> dict[str, float]:
        """Of the step that has just been finished, beside loss, grad_norm and learning_rate."""
        raise NotImplementedError

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Reports a finished step. TRL's other metrics are dropped."""
        if "grad_norm" not in logs:  # the summary at the end of training
            return
        for name in ("loss", "grad_norm"):
            if not math.isfinite(logs[name]):
                raise Diverged(f"{name} {logs[name]} at step {self.state.global_step}; lower learning_rate")
        step = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")}
        step |= self.metrics_of_step()
        self._metrics["train"].clear()
        self._on_step(self.state.global_step, step)

    def save_checkpoint(self) -> None:
        """Saves the state of the last finished step, unless it is saved already."""
        final = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        if not is_whole(final):
            self._save_checkpoint(self.model, None)

    def _save_checkpoint(self, model: torch.nn.Module, trial: None) -> None:
        name = f"checkpoint-{self.state.global_step}"
        final = Path(self.args.output_dir) / name
        aside = partial_dir(final.parent) / name
        try:
            Trainer._save_checkpoint(self, model, trial)  # not TRL's, which writes a model card as well
            publish(aside, final, fingerprint=self._fingerprint)
        except Exception:
            shutil.rmtree(aside, ignore_errors=True)  # on a full disk, its room is wanted
            raise
        self._on_checkpoint(self.state.global_step, final)

    def _get_output_dir(self, trial: None) -> str:
        return str(partial_dir(Path(self.args.output_dir)))

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        save_adapter(self.model, Path(output_dir or self.args.output_dir))


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the LoRA as a PEFT folder: adapter_config.json and adapter_model.safetensors, nothing else. The same LoRA,
    the same bytes: rollouts are known by them."""
    from peft import get_peft_model_state_dict

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = copy.copy(model.peft_config["default"])
    config.inference_mode = True
    if isinstance(config.target_modules, set):  # PEFT would list it in the order of this process
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(str(folder))
