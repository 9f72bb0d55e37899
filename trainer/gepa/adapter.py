"""GEPA's view of the campaign: what it evaluates candidates with and what it reflects on.

Invariant: a score is a reward that the rollout engine measured. A failure of the infrastructure is no score: the worker
makes those rollouts again or ends the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gepa.core.adapter import EvaluationBatch

from .examples import examples
from .job import Job
from .worker import Rollout, Worker

PROMPT = "prompt"
"""The one component of a candidate."""

Candidate = dict[str, str]


class CampaignAdapter:
    propose_new_texts = None

    def __init__(self, job: Job, worker: Worker) -> None:
        self._job = job
        self._worker = worker

    def evaluate(
        self, batch: list[str], candidate: Candidate, capture_traces: bool = False
    ) -> EvaluationBatch[Rollout, None]:
        """The rewards of a candidate on these tasks. Raises SearchEnded where there are no more rollouts to be had."""
        rollouts, new = self._worker.rollouts(candidate[PROMPT], batch)
        return EvaluationBatch(
            outputs=[None] * len(batch),
            scores=[rollout.reward for rollout in rollouts],
            trajectories=rollouts if capture_traces else None,
            num_metric_calls=new,
        )

    def make_reflective_dataset(
        self, candidate: Candidate, eval_batch: EvaluationBatch[Rollout, None], components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        room = self._job.reflection_chars - len(candidate[PROMPT])
        shown = examples(eval_batch.trajectories or [], shows_system=self._job.place == "before", room=room)
        return dict.fromkeys(components_to_update, shown)
