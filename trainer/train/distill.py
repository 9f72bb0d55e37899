"""On-policy distillation: the student plays, and at every token that it sampled its whole distribution is drawn to that
of a teacher, a weighted sum of adapters on the same base model.

Invariant: the loss is the reverse KL divergence, KL(student || teacher), summed over the vocabulary and averaged over
the batch's loss tokens; rewards decide nothing. The teacher is never trained, and saved with no checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from peft.tuners.lora import LoraLayer

from .batch import Batch
from .grpo import CapabilityTrainer
from .job import BadJob
from .rollouts import Rollout

Teacher = tuple[tuple[str, float], ...]
"""Folder and weight of each adapter. Without any, the base model."""


@dataclass(frozen=True)
class TaughtBatch(Batch):
    """`teachers` has one entry a row."""

    teachers: list[Teacher]


def taught_batch(groups: list[list[Rollout]]) -> TaughtBatch:
    """All rows that carry loss, each with its rollout's teacher. Raises BadJob where a rollout has none."""
    rows, teachers = [], []
    for index, group in enumerate(groups):
        for number, rollout in enumerate(group):
            if rollout.teacher is None:
                raise BadJob(
                    f"groups.{index}.rollouts.{number}.teacher: required where loss is distill; "
                    "name the adapters whose sum teaches, none for the base model"
                )
            kept = [row for row in rollout.rows if any(row.mask)]
            rows += kept
            teachers += [tuple((part.adapter, part.weight) for part in rollout.teacher)] * len(kept)
    rewards = torch.tensor([rollout.reward for group in groups for rollout in group], dtype=torch.float64)
    return TaughtBatch(
        rows=rows,
        advantages=[0.0] * len(rows),
        tokens=sum(sum(row.mask) for row in rows),
        metrics={
            "reward": rewards.mean().item(),
            "reward_std": rewards.std().item(),
            "teachers": len(set(teachers)),
        },
        teachers=teachers,
    )


class DistillingTrainer(CapabilityTrainer):
    """Its batches are taught ones."""

    shares_prompts = False  # its own forwards are padded

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._teacher: Teacher = ()
        self._names: dict[str, str] = {}

    def micro_batches(self, batch: Batch) -> Iterable[dict[str, torch.Tensor]]:
        """Rows of one teacher after those of another: a forward has one teacher."""
        assert isinstance(batch, TaughtBatch)
        for teacher in dict.fromkeys(batch.teachers):
            rows = [row for row, of in zip(batch.rows, batch.teachers, strict=True) if of == teacher]
            self._teacher = teacher
            yield from super().micro_batches(Batch(rows, [0.0] * len(rows), batch.tokens, {}))

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *_: Any, **__: Any) -> torch.Tensor:
        """The divergence of a micro-batch, as its part of the batch's mean."""
        on = inputs["tool_mask"].bool()
        own = self._log_distributions(model, inputs, on)
        with torch.no_grad(), self._taught():
            taught = self._log_distributions(model, inputs, on)
        sampled = own.detach().gather(1, inputs["completion_ids"][on].unsqueeze(1)).squeeze(1)
        self._compare(inputs, torch.zeros_like(inputs["old_per_token_logps"]).masked_scatter(on, sampled))
        return (own.exp() * (own - taught)).sum() / inputs["num_items_in_batch"]

    def _log_distributions(self, model: Any, inputs: dict[str, torch.Tensor], on: torch.Tensor) -> torch.Tensor:
        """Log-probabilities of the whole vocabulary, where the tokens that `on` marks were sampled."""
        logits = model(
            input_ids=torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1),
            attention_mask=torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1),
            use_cache=False,
        ).logits
        first = inputs["prompt_ids"].size(1)
        return logits[:, first - 1 : -1][on].float().log_softmax(-1)

    @contextlib.contextmanager
    def _taught(self) -> Iterator[None]:
        """The model is the teacher meanwhile."""
        model = self.model
        was_training = model.training
        model.eval()  # a teacher drops nothing out
        try:
            if not self._teacher:
                with model.disable_adapter():
                    yield
                return
            model.base_model.set_adapter([self._loaded(*part) for part in self._teacher], inference_mode=True)
            yield
        finally:
            model.base_model.set_adapter("default")
            model.train(was_training)

    def _loaded(self, folder: str, weight: float) -> str:
        """What the adapter is called in the model, where it has this weight from now on."""
        if folder not in self._names:
            name = f"teacher_{len(self._names)}"
            # PEFT initialises what it then reads; a resumed training, which loads it later, is to drop out the same.
            with torch.random.fork_rng():
                self.model.load_adapter(folder, name)
            self._names[folder] = name
        for module in self.model.modules():
            if isinstance(module, LoraLayer):
                module.set_scale(self._names[folder], weight)
        return self._names[folder]
