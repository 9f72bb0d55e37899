"""What the search asks its worker for: rollouts of candidates, replies of the reflection model.

Invariant: a candidate is asked for once a task, whatever GEPA evaluates again; a step is one request for rollouts, and
every finished step is told with its metrics and the best prompt until then, before anything else is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from trainer.command import Strict, first_problem
from trainer.train.channel import Channel, Interrupted, ProtocolError, RolloutsFailed
from trainer.train.metrics import METRICS, append_metrics

from .job import Job


class Rollout(Strict):
    """One conversation, in the shapes of docs/environments.md."""

    messages: list[dict[str, Any]]
    reward: float
    stop_reason: str = Field(alias="stopReason")
    reference: dict[str, Any] | None = None


class _Group(Strict):
    task: str
    rollouts: list[Rollout] = Field(min_length=1, max_length=1)


class _Batch(Strict):
    groups: list[_Group]


class SearchEnded(BaseException):
    """The worker gives no more rollouts or replies; with a reason, nothing at all. GEPA survives any `Exception`."""

    def __init__(self, reason: Exception | None = None) -> None:
        super().__init__(reason)
        self.reason = reason


class NoReply(Exception):
    """The reflection model gave no usable reply: GEPA does without this candidate."""


class Worker:
    def __init__(self, job: Job, channel: Channel) -> None:
        self._job = job
        self._channel = channel
        self._known: dict[tuple[str, str], Rollout] = {}
        self._metrics = Path(job.output_dir) / METRICS
        self._asked: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._told = True
        self.step = 0
        self.best: str | None = None

    @property
    def spent(self) -> int:
        """Rollouts until now."""
        return len(self._known)

    def begin(self) -> None:
        self._metrics.unlink(missing_ok=True)
        self._channel.send({"type": "ready", "step": 0})

    def rollouts(self, prompt: str, tasks: list[str]) -> tuple[list[Rollout], int]:
        """A rollout of each task with this prompt, and how many of them are new. Raises SearchEnded."""
        new = [task for task in dict.fromkeys(tasks) if (prompt, task) not in self._known]
        if new:
            self._roll_out(prompt, new)
        return [self._known[prompt, task] for task in tasks], len(new)

    def reply(self, prompt: str) -> str:
        """What the reflection model says. Raises NoReply or SearchEnded."""
        # GEPA tries a failed question again at once (`_propose_texts_batch_safe`): that is no new question.
        if (refusal := self._refused.pop(prompt, None)) is not None:
            raise NoReply(refusal)
        self.tell_best()
        again = self._asked.get(prompt, 0)
        self._asked[prompt] = again + 1
        request = {"type": "reply", "step": self.step, "messages": [{"role": "user", "content": prompt}]}
        answer = self._ask({**request, "again": again}, fields={"reply": "text", "no_reply": "problem", "spent": "id"})
        if answer["type"] == "spent":
            raise SearchEnded
        if answer["type"] == "no_reply":
            self._refused[prompt] = answer["problem"]
            raise NoReply(answer["problem"])
        return str(answer["text"])

    def tell_best(self) -> None:
        """Tells the checkpoint of the last step: once what GEPA makes of its rollouts is known."""
        if self._told or self.best is None:
            return
        self._told = True
        self._channel.send({"type": "checkpoint", "step": self.step, "policy": self._policy(self.best)})

    def end(self) -> None:
        self.tell_best()
        self._channel.send({"type": "done", "step": self.step})

    def _roll_out(self, prompt: str, tasks: list[str]) -> None:
        self.tell_best()
        request = {"type": "rollouts", "step": self.step, "tasks": tasks, "group_size": 1}
        answer = self._ask(
            {**request, "policy": self._policy(prompt), "content": "messages"},
            fields={"rollouts": "file", "spent": "id"},
        )
        if answer["type"] == "spent":
            raise SearchEnded
        try:
            rollouts = _read(Path(answer["file"]), tasks)
        except ProtocolError as error:
            raise SearchEnded(error) from error
        self._known.update(((prompt, task), rollout) for task, rollout in zip(tasks, rollouts, strict=True))
        self.step += 1
        self._told = False
        reward = sum(rollout.reward for rollout in rollouts) / len(rollouts)
        metrics = {"reward": reward, "rollouts": self.spent}
        append_metrics(self._metrics, {"step": self.step, **metrics})
        self._channel.send({"type": "step", "step": self.step, "metrics": metrics})

    def _ask(self, request: dict[str, Any], *, fields: dict[str, str]) -> dict[str, Any]:
        try:
            return self._channel.ask(request, fields=fields)
        except (Interrupted, RolloutsFailed, ProtocolError) as error:
            raise SearchEnded(error) from error

    def _policy(self, prompt: str) -> dict[str, Any]:
        return {"prompt": {"text": prompt, "place": self._job.place}} if prompt else {"base": True}


def _read(path: Path, tasks: list[str]) -> list[Rollout]:
    """The rollouts of a batch file, in the order of `tasks`. Raises ProtocolError for anything else."""
    try:
        groups = _Batch.model_validate_json(path.read_bytes()).groups
    except OSError as error:
        raise ProtocolError(f"batch file {path}: {error.strerror}") from error
    except ValidationError as error:
        raise ProtocolError(first_problem(error, f"batch file {path}").line) from error
    if [group.task for group in groups] != tasks:
        raise ProtocolError(f"groups of {path}: not of the tasks {json.dumps(tasks)}, in this order")
    return [group.rollouts[0] for group in groups]
