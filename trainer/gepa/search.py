"""One search from its first request to its last.

Invariant: it ends with the best candidate so far when the worker gives no more rollouts or replies, when it is asked to
stop, or when going on brings no new ones; whatever GEPA swallows, no failure of the worker's is taken for a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gepa
from trainer.train.channel import Channel, Interrupted
from trainer.train.checkpoint import only_trainer

from .adapter import PROMPT, CampaignAdapter
from .job import Job
from .worker import SearchEnded, Worker

IDLE_PASSES = 2
"""Passes over the train tasks without a new rollout, after which nothing new is to be expected."""


def search(job: Job, channel: Channel) -> None:
    """Searches until done or interrupted and says so. Raises FolderBusy, RolloutsFailed or ProtocolError."""
    output = Path(job.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    with only_trainer(output):
        _search(job, channel)


def _search(job: Job, channel: Channel) -> None:
    worker = Worker(job, channel)
    worker.begin()
    reason: Exception | None = None
    try:
        _optimize(job, worker)
    except SearchEnded as ended:
        reason = ended.reason
    if isinstance(reason, Interrupted):
        channel.send({"type": "interrupted", "step": worker.step})
        return
    if reason:
        raise reason
    worker.end()


def _optimize(job: Job, worker: Worker) -> None:
    passes = -(-len(job.train) // job.minibatch_size)
    gepa.optimize(
        seed_candidate={PROMPT: job.prompt},
        trainset=job.train,
        valset=job.validation,
        adapter=CampaignAdapter(job, worker),
        reflection_lm=worker.reply,
        candidate_selection_strategy=job.candidate_selection,
        acceptance_criterion=job.acceptance,
        reflection_minibatch_size=job.minibatch_size,
        use_merge=job.merges > 0,
        max_merge_invocations=job.merges,
        stop_callbacks=[Idle(worker, IDLE_PASSES * passes)],
        callbacks=[Best(worker)],
        track_best_outputs=False,
        seed=job.seed,
    )


class Best:
    """Hears of every candidate that was evaluated on the validation tasks."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def on_valset_evaluated(self, event: Any) -> None:
        if event["is_best_program"]:
            self._worker.best = event["candidate"][PROMPT]


class Idle:
    """Stops a search whose last iterations brought no new rollout: minibatches are solved, or no candidate is new."""

    def __init__(self, worker: Worker, iterations: int) -> None:
        self._worker = worker
        self._iterations = iterations
        self._spent = worker.spent
        self._since = 0

    def __call__(self, state: Any) -> bool:
        if self._worker.spent != self._spent:
            self._spent, self._since = self._worker.spent, state.i
        return state.i - self._since >= self._iterations
