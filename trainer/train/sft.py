"""One training on conversations, with TRL's SFTTrainer.

Invariant: the rows of a step follow from the job, the conversations and the step alone, so that a training that is
resumed ends as one that was not interrupted."""

import math
import random
from typing import Any

import torch
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoTokenizer, TrainerCallback
from trl import SFTConfig, SFTTrainer

from .channel import Channel
from .conversations import Row, SftJob, rows_of
from .learn import TellsAndSaves, common_settings, learn
from .model import build_model


def run(job: SftJob, channel: Channel) -> None:
    """Trains until done or interrupted and says so. Raises what `learn` does."""
    rows = rows_of(job)
    steps = job.steps or math.ceil(job.epochs * len(rows) / job.rows_per_step)
    learn(job, channel, steps=steps, make=lambda _: make_trainer(job, channel, rows, steps))


class ConversationTrainer(TellsAndSaves, SFTTrainer):
    """Takes its rows in their order."""

    _done = 0
    """Micro-batches of the step."""

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> SequentialSampler:
        return SequentialSampler(train_dataset or self.train_dataset)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss = super().training_step(*args, **kwargs)
        total = self.args.gradient_accumulation_steps
        self._done = self._done % total + 1
        self._channel.progress(step=self.state.global_step, done=self._done, total=total)
        return loss

    def metrics_of_step(self) -> dict[str, float]:
        accuracy = self._metrics["train"]["mean_token_accuracy"]
        return {"token_accuracy": sum(accuracy) / len(accuracy)}


class _Stops(TrainerCallback):
    """Between two steps, where the worker wants it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._channel.stop_if_asked()


def order(*, seed: int, rows: int, drawn: int) -> list[int]:
    """So many rows, in passes over all of them, each shuffled."""
    generator = random.Random(seed)
    indexes: list[int] = []
    while len(indexes) < drawn:
        indexes += generator.sample(range(rows), rows)
    return indexes[:drawn]


def make_trainer(job: SftJob, channel: Channel, rows: list[Row], steps: int) -> ConversationTrainer:
    """Model, data and TRL trainer of a job: the loss is the mean over the loss tokens of a step's rows."""
    longest = max(len(row.input_ids) for row in rows)
    at_once = max(
        n
        for n in range(1, job.rows_per_step + 1)
        if n == 1 or (job.rows_per_step % n == 0 and n * longest <= job.tokens_per_forward)
    )
    data = Dataset.from_dict({"input_ids": [row.input_ids for row in rows], "labels": [row.labels for row in rows]})
    return ConversationTrainer(
        model=build_model(job),
        args=SFTConfig(
            **common_settings(job, steps),
            per_device_train_batch_size=at_once,
            gradient_accumulation_steps=job.rows_per_step // at_once,
            dataset_kwargs={"skip_prepare_dataset": True},  # rows have their labels
            max_length=None,
            packing=False,
        ),
        train_dataset=data.select(order(seed=job.seed, rows=len(rows), drawn=steps * job.rows_per_step)),
        processing_class=AutoTokenizer.from_pretrained(job.base_model),
        callbacks=[_Stops(channel)],
        job=job,
        channel=channel,
    )
