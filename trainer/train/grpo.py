"""The trainer of one LoRA with GRPO on rollouts that the worker makes, each step's under the weights as they are.

Invariants: one optimizer step per rollout batch, on the sampled ids, against the sampler's log-probs: the ratio to
these is the importance weight of a token, and clip and delta bound it. Rows that were sampled at another temperature
than 1 are held against the policy's own log-probs of this step.

The loss (clip, KL, MoE terms) and the training loop are TRL's. Three seams of TRL are replaced: `training_step`, so
that constant groups enter neither the loss nor its normaliser, rollouts may have several rows, and padding stays small
(docs/decisions.md); the log-probs of tokens (logps.py); and the writing of checkpoints, so that they are whole."""

from __future__ import annotations

import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer
from transformers.trainer_callback import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from trainer.linear import LIMITS

from .batch import micro_batches
from .channel import Channel, Diverged
from .checkpoint import append_metrics, is_whole, new_checkpoint, partial_dir, policy_of
from .groups import Batch, check_gap, training_batch
from .job import Job, read_groups
from .logps import SampledLogps
from .model import b_norm, save_adapter
from .outliers import LOG_RATIO_LIMIT, NO_LOGPROB, Extreme, divergence, mean_gap
from .ranks import Ranks


def grpo_config(job: Job, **changes: Any) -> GRPOConfig:
    """TRL's settings for a job: one optimizer step per rollout batch, a constant learning rate, and nothing written or
    reported but by us."""
    settings = {
        "output_dir": str(job.output),
        "seed": job.seed,
        "max_steps": job.steps,
        "router_aux_loss_coef": 0.0,  # the method's loss has no load-balancing term
        "learning_rate": job.learning_rate,
        "lr_scheduler_type": "constant",
        "max_grad_norm": job.max_grad_norm,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": job.dtype == "bfloat16" and torch.cuda.is_available(),
        "gradient_checkpointing": job.gradient_checkpointing,
        "save_steps": job.checkpoint_every,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "report_to": "none",  # curves.py adds the callbacks
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "per_device_train_batch_size": job.groups_per_step * job.group_size,
        "num_generations": job.group_size,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 1,
        "shuffle_dataset": False,
        "loss_type": "dapo",  # the mean over the loss tokens of the batch
        "epsilon": job.clip,
        "delta": job.delta,
        "off_policy_mask_threshold": job.off_policy_mask_threshold,
        "beta": job.kl,
        "temperature": job.temperature,
    }
    return GRPOConfig(**{**settings, **changes})


class CapabilityTrainer(GRPOTrainer):
    """Finished steps are lines of metrics.jsonl and messages; of several processes, rank 0 alone reports and saves."""

    def __init__(self, *, job: Job, channel: Channel | None, ranks: Ranks, **kwargs: Any) -> None:
        super().__init__(reward_funcs=lambda **_: [], **kwargs)  # rewards come with the rollouts
        self.remove_callback(PrinterCallback)
        self.processing_class = None  # checkpoints hold no tokenizer
        self._job, self._channel, self._ranks, self._output = job, channel, ranks, job.output
        self._step_metrics: dict[str, float] = {}
        self._update_started = 0.0
        self._micro: dict[str, torch.Tensor] = {}
        self._at_one = torch.empty(0)
        self._sums: dict[str, float] = {}
        """Sums over the tokens and rows of a step."""
        self._extreme, self._row_names = Extreme(), list[str]()
        # In half precision TRL's forward computes under autocast.
        shares = not self.args.gradient_checkpointing
        self._sampled = (
            None
            if self.args.bf16
            else SampledLogps(self.model.get_base_model(), shares=shares, limit=LIMITS[job.dtype])
        )

    def _collect(self, step: int, tasks: list[str]) -> Batch:
        """Returns the rollouts of a step. Raises what asking does."""
        rollouts = json.loads(
            self._ranks.shared(f"rollouts of step {step}", lambda: json.dumps(self._rollouts(step, tasks)))
        )
        vocabulary = self.model.get_input_embeddings().num_embeddings
        tasks = rollouts.get("tasks", tasks)
        groups = read_groups(
            Path(rollouts["file"]), tasks=tasks, group_size=self._job.group_size, vocabulary=vocabulary
        )
        return training_batch(groups, self._job.advantage)

    def _rollouts(self, step: int, tasks: list[str]) -> dict[str, Any]:
        weights = self._output / "weights"  # kept until the next request
        shutil.rmtree(weights, ignore_errors=True)
        save_adapter(self.model, adapter := weights / f"step-{step}")
        fields = {"tasks": tasks, "group_size": self._job.group_size, "policy": policy_of(adapter)}
        return self._channel.ask("rollouts", step=step, **fields, answers={"rollouts": "file"})

    def training_step(
        self, model: torch.nn.Module, inputs: list[dict[str, str]], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Collects the rollouts of `inputs` (each task `group_size` times in a row) and adds up their gradient."""
        started = time.perf_counter()
        batch = self._collect(self.state.global_step, [row["prompt"] for row in inputs[:: self.num_generations]])
        self._update_started = time.perf_counter()
        model.train()
        names = ("loss", "entropy", "kl", "gap", "gap_tokens", "masked_rows", "bounded_tokens")
        self._sums = sums = dict.fromkeys(names, 0.0)
        self._extreme, self._row_names = Extreme(), batch.names
        micros = micro_batches(
            batch,
            tokens_per_forward=self._job.tokens_per_forward,
            pad_id=self._tokenizer.pad_token_id,
            device=self.args.device,
            shares=self._sampled is not None and self._sampled.shares,
        )
        own = self._ranks.own([one["prompt_ids"].numel() + one["completion_ids"].numel() for one in micros])
        for done, index in enumerate(own, start=1):
            self._micro = micro = micros[index]
            if self._ranks.size > 1:  # dropout, whichever rank computes it
                torch.manual_seed(hash((self._job.seed, self.state.global_step, index)))
            if self.beta != 0.0:
                micro["ref_per_token_logps"] = self._base_logps(micro)
            part = self.compute_loss(model, micro)
            self.accelerator.backward(part)
            sums["loss"] += part.item()
            for name in ("entropy", "kl"):
                if means := self._metrics["train"].get(name):  # which TRL has just recorded
                    sums[name] += means[-1] * int(micro["tool_mask"].sum())
            if self._channel:
                self._channel.progress(step=self.state.global_step, done=done, total=len(own))
        if self._ranks.size > 1:
            self._ranks.add(model, sums)
        if not math.isfinite(sums["loss"]):
            raise self._divergence("loss", sums["loss"], self.state.global_step + 1)
        gap = mean_gap(sums["gap"], sums["gap_tokens"], batch.known_tokens)
        check_gap(self._job, gap, self.state.global_step + 1)
        tokens = batch.tokens
        self._step_metrics = {
            **batch.metrics,
            "rows": len(batch.rows),
            "loss_tokens": tokens,
            "masked_rows": int(sums["masked_rows"]),
            "bounded_tokens": int(sums["bounded_tokens"]),
            **({"entropy": sums["entropy"] / tokens} if tokens and math.isfinite(sums["entropy"]) else {}),
            **({"kl": sums["kl"] / tokens} if tokens and self.beta != 0.0 else {}),
            **({} if math.isnan(gap) or not batch.known_tokens else {"logprob_gap": gap}),
            "rollouts_seconds": self._update_started - started,
        }
        return torch.tensor(sums["loss"], device=self.args.device)

    def _base_logps(self, micro: dict[str, torch.Tensor]) -> torch.Tensor:
        ids = torch.cat([micro["prompt_ids"], micro["completion_ids"]], dim=1)
        mask = torch.cat([micro["prompt_mask"], micro["completion_mask"]], dim=1)
        with torch.no_grad(), self.model.disable_adapter():
            return self._scored(self.model, ids, mask, micro["completion_ids"].size(1))[0]

    def _scored(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, completion: int, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Log-probs of the micro-batch's last `completion` columns, entropies and MoE loss."""
        if self._sampled is None or not self._sampled.usable:
            result = super()._get_per_token_logps_and_entropies(model, ids, mask, completion, **kwargs)
            # TRL's are at the sampling temperature alone; the gap is defined at temperature 1.
            self._at_one = result[0].detach() if self.temperature == 1 else torch.full_like(result[0], math.nan)
            return result
        wanted = torch.zeros_like(ids)
        wanted[:, -completion:] = self._micro["tool_mask"]
        logps, at_one, entropies = self._sampled(ids, wanted=wanted, temperature=self.temperature)
        self._at_one = at_one[:, -completion:]
        return logps[:, -completion:], entropies[:, -completion:], None

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> tuple:
        result = self._scored(*args, **kwargs)
        own, micro, most = result[0].detach(), self._micro, self._job.importance_sampling_clip_max
        reported, base = micro["old_per_token_logps"], micro.get("ref_per_token_logps", torch.zeros_like(own))
        unknown = reported <= NO_LOGPROB
        known = micro["tool_mask"].bool() & ~unknown
        distance = (self._at_one - reported).abs()
        is_bounded = (distance > LOG_RATIO_LIMIT) & ~unknown
        differences = distance[known & ~is_bounded]
        self._sums["gap"] += differences.sum().item()
        self._sums["gap_tokens"] += differences.numel()
        self._count_bounded(is_bounded | unknown, torch.where(unknown, 0.0, distance), own, base)
        # The loss reads these next. TRL multiplies the KL term by the ratio, which says nothing where it is bounded.
        least, largest = own - LOG_RATIO_LIMIT, own + LOG_RATIO_LIMIT
        sampled = torch.where(unknown | (self.temperature != 1), own, reported.clamp(least, largest))
        micro["sampling_per_token_logps"] = micro["old_per_token_logps"] = sampled
        if self.beta != 0.0:
            micro["ref_per_token_logps"] = torch.where(is_bounded, own, base.clamp(least, largest))
        if most is not None:  # the weight is a factor, and the ratio that is clipped is to the policy's own: 1
            micro["old_per_token_logps"] = own
            micro["advantages"] = micro["advantages"][:, None] * (own - sampled).exp().clamp(max=most)
        return result

    def _count_bounded(
        self, is_bounded: torch.Tensor, distance: torch.Tensor, own: torch.Tensor, base: torch.Tensor
    ) -> None:
        """Counts the loss tokens whose log-probs are bounded, and remembers the most extreme one of the step."""
        micro, carries_loss = self._micro, self._micro["tool_mask"].bool()
        if self.beta != 0.0:
            from_base = (own - base).abs()
            is_bounded, distance = is_bounded | (from_base > LOG_RATIO_LIMIT), torch.maximum(distance, from_base)
        self._sums["bounded_tokens"] += int((is_bounded & carries_loss).sum())
        distance = torch.where(own.isfinite() & base.isfinite(), distance.nan_to_num(), math.inf)
        place = int(torch.where(carries_loss, distance, 0.0).argmax())
        row, column = divmod(place, own.size(1))
        if (furthest := distance[row, column].item()) > self._extreme.distance:
            self._extreme = Extreme(
                distance=furthest,
                row=int(micro["row_numbers"][row]),
                token=column - int(micro["prompt_lengths"][row]) + micro["prompt_ids"].size(1),
                own=own[row, column].item(),
                sampled=micro["old_per_token_logps"][row, column].item(),
                base=base[row, column].item(),
            )

    def _divergence(self, name: str, value: float, step: int) -> Diverged:
        distance, row, token, *logprobs = self._ranks.largest(self._extreme)
        return divergence(name, value, step, Extreme(distance, int(row), int(token), *logprobs), self._row_names)

    def get_off_policy_mask(self, advantages: torch.Tensor, **given: Any) -> torch.Tensor:
        """TRL's, a row's tokens alike; what it leaves out is counted."""
        kept = GRPOTrainer.get_off_policy_mask(advantages[:, :1], **given)
        self._sums["masked_rows"] += int((kept == 0).sum())
        return kept

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Reports a finished step."""
        if "grad_norm" not in logs:  # the summary at the end of training
            return
        step = self.state.global_step
        for name in ("loss", "grad_norm"):
            if not math.isfinite(logs[name]):
                raise self._divergence(name, logs[name], step)
        metrics = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")} | self._step_metrics
        if math.isfinite(norm := b_norm(self.model)):  # a training that diverges shows it in the loss of the next step
            metrics["b_norm"] = norm
        metrics["update_seconds"] = time.perf_counter() - self._update_started
        self._metrics["train"].clear()
        if self._ranks.rank > 0:
            return
        append_metrics(self._output, step, metrics)
        self._channel.send("step", step=step, metrics=metrics)
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, metrics)

    def save_checkpoint(self) -> None:
        """Saves the state of the last finished step, unless it is saved already."""
        if not is_whole(self._output / f"checkpoint-{self.state.global_step}"):
            self._save_checkpoint(self.model, None)

    def _save_checkpoint(self, model: torch.nn.Module, trial: None) -> None:
        if self._ranks.rank > 0:
            return
        with new_checkpoint(self._output, self.state.global_step, fingerprint=self._job.fingerprint()) as (_, final):
            Trainer._save_checkpoint(self, model, trial)  # not TRL's, which writes a model card as well
        self._channel.send("checkpoint", step=self.state.global_step, policy=policy_of(final))

    def _get_output_dir(self, trial: None) -> str:
        return str(partial_dir(self._output))

    def _save(self, output_dir: str, state_dict: dict | None = None) -> None:
        save_adapter(self.model, Path(output_dir))
