"""GRPO on rollouts that somebody else made.

Invariant: one optimizer step per rollout batch, on the sampled ids, against the sampler's log-probs; rows that bring
none, since they were sampled under a hint, against the policy's own of this step. The loss (clip, KL, MoE terms) and
the training loop are TRL's. Two seams of TRL are replaced: `training_step`, so that constant groups enter neither the
loss nor its normaliser, rollouts may have several rows, and padding stays small
(docs/decisions/trainer.md); and the writing of checkpoints, so that they are whole."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback
from trl import GRPOTrainer

from .batch import Batch, micro_batches
from .checkpoint import is_whole, partial_dir, publish

Collect = Callable[[int, list[str]], Batch]
"""Rollouts for one step: (finished steps, task ids) -> batch. May raise Interrupted."""


class Diverged(RuntimeError):
    """The loss or its gradient is not finite; the last whole checkpoint is good."""


class CapabilityTrainer(GRPOTrainer):
    """`collect` brings a step's batch; `on_step` gets the finished steps and metrics, `on_checkpoint` their folder."""

    def __init__(
        self,
        *,
        collect: Collect,
        on_step: Callable[[int, dict[str, float]], None],
        on_checkpoint: Callable[[int, Path], None],
        fingerprint: str,
        tokens_per_forward: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(reward_funcs=_rewards_are_given, **kwargs)
        self.remove_callback(PrinterCallback)
        self.processing_class = None  # checkpoints hold no tokenizer
        self._collect = collect
        self._on_step = on_step
        self._on_checkpoint = on_checkpoint
        self._fingerprint = fingerprint
        self._tokens_per_forward = tokens_per_forward
        self._step_metrics: dict[str, float] = {}
        self._update_started = 0.0
        self._micro: dict[str, torch.Tensor] = {}
        self._logps = torch.empty(0)

    def training_step(
        self, model: torch.nn.Module, inputs: list[dict[str, str]], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Collects the rollouts of `inputs` (each task `group_size` times in a row) and adds up their gradient."""
        started = time.perf_counter()
        batch = self._collect(self.state.global_step, [row["prompt"] for row in inputs[:: self.num_generations]])
        self._update_started = time.perf_counter()
        model.train()
        loss, gap = torch.zeros((), device=self.args.device), 0.0
        for micro in micro_batches(
            batch,
            tokens_per_forward=self._tokens_per_forward,
            pad_id=self._tokenizer.pad_token_id,
            device=self.args.device,
        ):
            if self.beta != 0.0:
                micro["ref_per_token_logps"] = self._base_logps(micro)
            self._micro = micro
            part = self.compute_loss(model, micro)
            self.accelerator.backward(part)
            loss += part.detach()
            gap += ((self._logps - micro["old_per_token_logps"]).abs() * micro["tool_mask"]).sum().item()
        if not math.isfinite(loss.item()):
            raise Diverged(f"loss {loss.item()} at step {self.state.global_step + 1}; lower learning_rate")
        self._step_metrics = {
            **batch.metrics,
            "rows": len(batch.rows),
            "loss_tokens": batch.tokens,
            "logprob_gap": gap / max(batch.known_tokens, 1),
            "rollouts_seconds": self._update_started - started,
        }
        return loss

    def _base_logps(self, micro: dict[str, torch.Tensor]) -> torch.Tensor:
        ids = torch.cat([micro["prompt_ids"], micro["completion_ids"]], dim=1)
        mask = torch.cat([micro["prompt_mask"], micro["completion_mask"]], dim=1)
        with torch.no_grad(), self.model.disable_adapter():
            return super()._get_per_token_logps_and_entropies(self.model, ids, mask, micro["completion_ids"].size(1))[0]

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> tuple:
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._logps = result[0].detach()  # for logprob_gap, without a second forward
        # The loss reads the old log-probs next.
        old = self._micro["old_per_token_logps"]
        old.copy_(torch.where(self._micro["old_is_unknown"], self._logps, old))
        return result

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Reports a finished step. TRL's other metrics are dropped."""
        self._metrics["train"].clear()
        if "grad_norm" not in logs:  # the summary at the end of training
            return
        if not math.isfinite(logs["grad_norm"]):
            raise Diverged(f"grad_norm {logs['grad_norm']} at step {self.state.global_step}; lower learning_rate")
        seconds = time.perf_counter() - self._update_started
        step = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")}
        self._on_step(self.state.global_step, {**step, **self._step_metrics, "update_seconds": seconds})

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


def _rewards_are_given(**_: Any) -> list[float]:
    """TRL wants a reward function; here rewards come with the rollouts."""
    raise NotImplementedError("rewards come with the rollouts")


def save_adapter(model: Any, folder: Path) -> None:
    """Writes the LoRA as a PEFT folder: adapter_config.json and adapter_model.safetensors, nothing else."""
    from peft import get_peft_model_state_dict

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = model.peft_config["default"]
    training, config.inference_mode = config.inference_mode, True
    config.save_pretrained(str(folder))
    config.inference_mode = training
