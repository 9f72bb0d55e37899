"""One training with GRPO on rollouts that the worker makes, each step's under the weights as they are, or as they were
before the last update where rollouts are made a step ahead.

Invariants: one optimizer step per rollout batch, on the sampled ids, against the sampler's log-probs: the ratio to
these is the importance weight of a token, and clip and delta bound it. It is what corrects rollouts that were made a
step ahead, by the policy from before the last update. They are at temperature 1: rows that were
sampled at another one are held against the policy's own of this step.

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
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from .batch import micro_batches
from .channel import Channel, Diverged
from .checkpoint import policy_of
from .groups import Batch, check_gap, tasks_of_all_steps, training_batch
from .job import Job, read_groups
from .learn import TellsAndSaves, learn, save_adapter
from .logps import SampledLogps
from .model import build_model
from .outliers import LOG_RATIO_LIMIT, NO_LOGPROB, Extreme, divergence, mean_gap
from .ranks import Ranks

BEFORE = Path("before", "policy")
"""In a checkpoint: the policy from before its last update, which makes the next step's rollouts where these are made
ahead. So deep that transformers does not take it for an adapter to load."""


def run(job: Job, channel: Channel) -> None:
    """Trains until done or interrupted and says so. Raises what `learn` does."""
    learn(job, channel, lambda checkpoint: make_trainer(job, channel, Ranks.start(job, checkpoint)))


def make_trainer(job: Job, channel: Channel, ranks: Ranks | None = None) -> CapabilityTrainer:
    """Model, data and TRL trainer of a job; the trainer's every step asks `channel` for its rollouts."""
    ranks, model = ranks or Ranks(), build_model(job)
    return CapabilityTrainer(
        model=ranks.shard(model) if job.shard_base else model,
        args=grpo_config(job),
        train_dataset=Dataset.from_dict({"prompt": tasks_of_all_steps(job)}),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        job=job,
        channel=channel,
        ranks=ranks,
    )


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
        "bf16": job.dtype == "bfloat16",
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


def _no_rewards(**_: Any) -> list[float]:
    """TRL wants a reward function; here rewards come with the rollouts."""
    raise NotImplementedError("rewards come with the rollouts")


class CapabilityTrainer(TellsAndSaves, GRPOTrainer):
    def __init__(self, *, job: Job, ranks: Ranks, **kwargs: Any) -> None:
        super().__init__(reward_funcs=_no_rewards, job=job, **kwargs)
        self._ranks, self.leads = ranks, ranks.rank == 0
        self._tokens_per_forward = job.tokens_per_forward
        self._asked = -1
        """The last step whose rollouts were asked for."""
        self._step_metrics: dict[str, float] = {}
        self._update_started = 0.0
        self._micro: dict[str, torch.Tensor] = {}
        self._at_one, self._gap, self._gap_tokens = torch.empty(0), 0.0, 0
        self._masked_rows = self._bounded_tokens = 0
        self._extreme, self._row_names = Extreme(), list[str]()
        # In half precision TRL's forward computes under autocast; layers in parts are whole in their own forward alone.
        self._sampled = None if self.args.bf16 or job.shard_base else SampledLogps(self.model.get_base_model())

    def _collect(self, step: int, tasks: list[str]) -> Batch:
        """Rollouts of a step; those of the next are asked for where they are made ahead. Raises what asking does."""
        rollouts = json.loads(
            self._ranks.shared(f"rollouts of step {step}", lambda: json.dumps(self._rollouts(step, tasks)))
        )
        vocabulary = self.model.get_input_embeddings().num_embeddings
        tasks = rollouts.get("tasks", tasks)
        groups = read_groups(
            Path(rollouts["file"]), tasks=tasks, group_size=self._job.group_size, vocabulary=vocabulary
        )
        if self._job.steps_ahead:
            self._ranks.wait()  # for whoever reads the file, which may be the next one's then
            if self.leads:
                self._ask_ahead(step + 1)
        return training_batch(groups, self._job.advantage)

    def _rollouts(self, step: int, tasks: list[str]) -> dict[str, Any]:
        if self._asked < step:
            if self._job.steps_ahead and step > 0:  # resumed: as they were asked for by whoever wrote the checkpoint
                self._ask(step, tasks, self._output / f"checkpoint-{step}" / BEFORE, ahead=1)
            else:
                self._ask(step, tasks, self._save_weights(step))
        return self._channel.answer("rollouts", step=step, answers={"rollouts": "file"})

    def _ask_ahead(self, step: int) -> None:
        """Asks for a step's rollouts by the policy as it is, before the update that precedes the step."""
        adapter = self._save_weights(step - 1)
        if step < self._job.steps:
            size = self._job.groups_per_step
            self._ask(step, tasks_of_all_steps(self._job)[step * size :][:size], adapter, ahead=1)

    def _ask(self, step: int, tasks: list[str], adapter: Path, **fields: int) -> None:
        asked = {"tasks": tasks, "group_size": self._job.group_size, "policy": policy_of(adapter), **fields}
        self._channel.request("rollouts", step=step, **asked)
        self._asked = step

    def _save_weights(self, step: int) -> Path:
        """Of so many finished steps, until the next request."""
        weights = self._output / "weights"
        shutil.rmtree(weights, ignore_errors=True)
        save_adapter(self.model, adapter := weights / f"step-{step}")
        return adapter

    def _save(self, output_dir: str, state_dict: dict | None = None) -> None:
        super()._save(output_dir, state_dict)
        step = self.state.global_step
        if self._job.steps_ahead and step > 0:
            shutil.copytree(self._output / "weights" / f"step-{step - 1}", Path(output_dir) / BEFORE)

    def training_step(
        self, model: torch.nn.Module, inputs: list[dict[str, str]], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Collects the rollouts of `inputs` (each task `group_size` times in a row) and adds up their gradient."""
        started = time.perf_counter()
        batch = self._collect(self.state.global_step, [row["prompt"] for row in inputs[:: self.num_generations]])
        self._update_started = time.perf_counter()
        model.train()
        loss = torch.zeros((), device=self.args.device)
        self._gap, self._gap_tokens, self._masked_rows, self._bounded_tokens = 0.0, 0, 0, 0
        entropy = kl = 0.0
        self._extreme, self._row_names = Extreme(), batch.names
        micros = micro_batches(
            batch,
            tokens_per_forward=self._tokens_per_forward,
            pad_id=self._tokenizer.pad_token_id,
            device=self.args.device,
            shares=self._sampled is not None and self._sampled.usable and self._sampled.shares,
        )
        own, most = self._ranks.own([one["prompt_ids"].numel() + one["completion_ids"].numel() for one in micros])
        for done, index in enumerate(own, start=1):
            self._micro = micro = micros[index]
            if self._ranks.size > 1:  # dropout, whichever rank computes it
                torch.manual_seed(hash((self._job.seed, self.state.global_step, index)))
            if self.beta != 0.0:
                micro["ref_per_token_logps"] = self._base_logps(micro)
            part = self.compute_loss(model, micro)
            self.accelerator.backward(part)
            loss += part.detach()
            entropy += self._sum_of("entropy")
            kl += self._sum_of("kl")
            self._channel.progress(step=self.state.global_step, done=done, total=len(own))
        if self._job.shard_base:
            self._keep_up(model, most - len(own))
        if self._ranks.size > 1:
            counts = self._gap_tokens, self._masked_rows, self._bounded_tokens
            total, self._gap, entropy, kl, *counts = self._ranks.add(model, loss, self._gap, entropy, kl, *counts)
            loss = torch.tensor(total, device=self.args.device)
            self._gap_tokens, self._masked_rows, self._bounded_tokens = map(int, counts)
        if not math.isfinite(loss.item()):
            raise self.divergence("loss", loss.item(), self.state.global_step + 1)
        gap = mean_gap(self._gap, self._gap_tokens, batch.known_tokens)
        check_gap(self._job, gap, self.state.global_step + 1)
        self._step_metrics = {
            **batch.metrics,
            "rows": len(batch.rows),
            "loss_tokens": batch.tokens,
            "masked_rows": self._masked_rows,
            "bounded_tokens": self._bounded_tokens,
            **({"entropy": entropy / batch.tokens} if batch.tokens and math.isfinite(entropy) else {}),
            **({"kl": kl / batch.tokens} if batch.tokens and self.beta != 0.0 else {}),
            **({} if math.isnan(gap) or not batch.known_tokens else {"logprob_gap": gap}),
            "rollouts_seconds": self._update_started - started,
        }
        return loss

    def _sum_of(self, name: str) -> float:
        """Returns the sum over the micro-batch's loss tokens of a metric whose mean TRL has just recorded."""
        means = self._metrics["train"].get(name)
        return means[-1] * int(self._micro["tool_mask"].sum()) if means else 0.0

    def _keep_up(self, model: torch.nn.Module, forwards: int) -> None:
        """Lends the other ranks this one's parts of the layers, for as many micro-batches as it has fewer than they."""
        token = torch.zeros((1, 1), dtype=torch.long, device=self.args.device)
        for _ in range(forwards):
            if self.beta != 0.0:
                with torch.no_grad(), self.model.disable_adapter():
                    model(input_ids=token, use_cache=False)
            self.accelerator.backward(model(input_ids=token, use_cache=False).logits.sum() * 0)

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
            # TRL's are at the sampling temperature alone: at another one than 1 they tell nothing of the gap.
            self._at_one = result[0].detach() if self.temperature == 1 else torch.full_like(result[0], math.nan)
            return result
        wanted = torch.zeros_like(ids)
        wanted[:, -completion:] = self._micro["tool_mask"]
        prompts = self._micro["prompt_lengths"]
        logps, at_one, entropies = self._sampled(
            ids, lengths=mask.sum(1), prompts=prompts, wanted=wanted, temperature=self.temperature
        )
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
        self._gap += differences.sum().item()
        self._gap_tokens += differences.numel()
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
        self._bounded_tokens += int((is_bounded & carries_loss).sum())
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

    def divergence(self, name: str, value: float, step: int) -> Diverged:
        distance, row, token, *logprobs = self._ranks.largest(self._extreme)
        return divergence(name, value, step, Extreme(distance, int(row), int(token), *logprobs), self._row_names)

    def get_off_policy_mask(self, advantages: torch.Tensor, **given: Any) -> torch.Tensor:
        """TRL's, a row's tokens alike; what it leaves out is counted."""
        kept = GRPOTrainer.get_off_policy_mask(advantages[:, :1], **given)
        self._masked_rows += int((kept == 0).sum())
        return kept

    def metrics_of_step(self) -> dict[str, float]:
        return {**self._step_metrics, "update_seconds": time.perf_counter() - self._update_started}
