"""A search for a prompt with GEPA, from its first request to its last (docs/method.md).

Invariants: a search depends on its job and its worker's answers alone: the same job and answers lead to the same
requests, so a killed search is run again from its beginning. A candidate is rolled out once per task, even if GEPA
evaluates it again. A step is one request for rollouts; its metrics and the best prompt so far are sent before the next
request. The search ends with the best candidate so far when the worker has no more rollouts or replies, when it is
asked to stop, or when further iterations bring no new rollouts. A score is a reward that the rollout engine measured:
GEPA survives exceptions, but a failure of the worker never becomes a score."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from gepa.core.adapter import EvaluationBatch
from pydantic import Field

import gepa
from trainer.command import BadInput, Closed
from trainer.train.channel import Channel, Interrupted, ProtocolError, RolloutsFailed
from trainer.train.checkpoint import METRICS, append_metrics, only_trainer
from trainer.train.job import DamagedBatch, RolloutLine, read_rollouts

PROMPT = "prompt"
"""The one component of a candidate."""
IDLE_PASSES = 2
"""Passes over the train tasks without a new rollout, after which nothing new is to be expected."""

Candidate = dict[str, str]


class Job(Closed):
    """Fields as in docs/method.md. None has a default: the values are the campaign's to choose."""

    output_dir: str = Field(min_length=1)
    seed: int = Field(ge=0)
    train: list[str] = Field(min_length=1)
    validation: list[str] = Field(min_length=1)
    prompt: str
    place: Literal["before", "instead"]
    minibatch_size: int = Field(ge=1)
    acceptance: Literal["strict_improvement", "improvement_or_equal"]
    reflection_chars: int = Field(ge=1)


class Rollout(RolloutLine):
    """One conversation, in the shapes of docs/environments.md."""

    messages: list[dict[str, Any]]
    stop_reason: str = Field(alias="stopReason")
    reference: dict[str, Any] | None = None


class SearchEnded(BaseException):
    """The worker gives no more rollouts or replies; with a reason, nothing at all. GEPA survives any `Exception`."""

    def __init__(self, reason: Exception | None = None) -> None:
        super().__init__(reason)
        self.reason = reason


class NoReply(Exception):
    """The reflection model gave no usable reply: GEPA does without this candidate."""


class Worker:
    """The gpu worker as GEPA needs it: rollouts of prompts, replies of the reflection model, checkpoints."""

    def __init__(self, job: Job, channel: Channel) -> None:
        self._job, self._channel = job, channel
        self._output = Path(job.output_dir)
        self._rollouts: dict[tuple[str, str], Rollout] = {}
        self._times_asked: Counter[str] = Counter()
        self._refusals: dict[str, str] = {}
        self._reported = 0
        """The last step whose checkpoint was sent."""
        self.step = self.spent = 0
        """Finished steps; rollouts until now."""
        self.best: str | None = None

    def rollouts(self, prompt: str, tasks: list[str]) -> list[Rollout]:
        """A rollout of each task with this prompt. Raises SearchEnded."""
        if new := [task for task in dict.fromkeys(tasks) if (prompt, task) not in self._rollouts]:
            self._roll_out(prompt, new)
        return [self._rollouts[prompt, task] for task in tasks]

    def reply(self, prompt: str) -> str:
        """Returns the reply of the reflection model. Raises NoReply or SearchEnded."""
        # GEPA tries a failed question again at once (`_propose_texts_batch_safe`): that is no new question.
        if (refusal := self._refusals.pop(prompt, None)) is not None:
            raise NoReply(refusal)
        answers = {"reply": "text", "no_reply": "problem", "spent": "id"}
        messages, again = [{"role": "user", "content": prompt}], self._times_asked[prompt]
        self._times_asked[prompt] += 1
        answer = self._ask("reply", answers, messages=messages, again=again)
        if answer["type"] == "no_reply":
            self._refusals[prompt] = answer["problem"]
            raise NoReply(answer["problem"])
        return str(answer["text"])

    def send_best(self) -> None:
        """Sends the checkpoint of the last step, after GEPA has evaluated its rollouts."""
        if self._reported < self.step and self.best is not None:
            self._reported = self.step
            self._channel.send("checkpoint", step=self.step, policy=self._policy(self.best))

    def _roll_out(self, prompt: str, tasks: list[str]) -> None:
        fields = {"tasks": tasks, "group_size": 1, "policy": self._policy(prompt), "content": "messages"}
        answer = self._ask("rollouts", {"rollouts": "file", "spent": "id"}, **fields)
        try:
            rollouts = [group[0] for group in read_rollouts(Rollout, Path(answer["file"]), tasks=tasks, group_size=1)]
        except (BadInput, DamagedBatch) as error:
            raise SearchEnded(ProtocolError(str(error))) from error
        self._rollouts |= {(prompt, rollout.task): rollout for rollout in rollouts}
        self.spent += len(rollouts)
        self.step += 1
        reward = sum(rollout.reward for rollout in rollouts) / len(rollouts)
        metrics = {"reward": reward, "rollouts": self.spent}
        append_metrics(self._output, self.step, metrics)
        self._channel.send("step", step=self.step, metrics=metrics)

    def _ask(self, type: str, answers: dict[str, str], **fields: Any) -> dict[str, Any]:
        self.send_best()
        try:
            answer = self._channel.ask(type, answers=answers, step=self.step, **fields)
        except (Interrupted, RolloutsFailed, ProtocolError) as error:
            raise SearchEnded(error) from error
        if answer["type"] == "spent":
            raise SearchEnded
        return answer

    def _policy(self, prompt: str) -> dict[str, Any]:
        return {"prompt": {"text": prompt, "place": self._job.place}} if prompt else {"base": True}


def search(job: Job, channel: Channel) -> None:
    """Searches until done or interrupted and says so. Raises FolderBusy, RolloutsFailed or ProtocolError."""
    output = Path(job.output_dir)
    with only_trainer(output):
        (output / METRICS).unlink(missing_ok=True)
        channel.send("ready", step=0)
        worker = Worker(job, channel)
        reason: Exception | None = None
        try:
            _optimize(job, worker)
        except SearchEnded as ended:
            reason = ended.reason
        if isinstance(reason, Interrupted):
            channel.send("interrupted", step=worker.step)
            return
        if reason:
            raise reason
        worker.send_best()
        channel.send("done", step=worker.step)


def _optimize(job: Job, worker: Worker) -> None:
    adapter = CampaignAdapter(job, worker)
    passes = -(-len(job.train) // job.minibatch_size)
    gepa.optimize(
        seed_candidate={PROMPT: job.prompt},
        trainset=job.train,
        valset=job.validation,
        adapter=adapter,
        reflection_lm=worker.reply,
        acceptance_criterion=job.acceptance,
        reflection_minibatch_size=job.minibatch_size,
        stop_callbacks=[Idle(worker, IDLE_PASSES * passes)],
        callbacks=[adapter],
        track_best_outputs=False,
        seed=job.seed,
    )


class Idle:
    """Stops a search whose last iterations brought no new rollout: minibatches are solved, or no candidate is new."""

    def __init__(self, worker: Worker, iterations: int) -> None:
        self._worker, self._iterations = worker, iterations
        self._spent, self._since = worker.spent, 0

    def __call__(self, state: Any) -> bool:
        if self._worker.spent != self._spent:
            self._spent, self._since = self._worker.spent, state.i
        return state.i - self._since >= self._iterations


class CampaignAdapter:
    """GEPA's adapter and callback: evaluates candidates, builds the examples for reflection, records the best one."""

    propose_new_texts = None

    def __init__(self, job: Job, worker: Worker) -> None:
        self._job, self._worker = job, worker

    def evaluate(
        self, batch: list[str], candidate: Candidate, capture_traces: bool = False
    ) -> EvaluationBatch[Rollout, None]:
        """The rewards of a candidate on these tasks. Raises SearchEnded where there are no more rollouts to be had."""
        rollouts = self._worker.rollouts(candidate[PROMPT], batch)
        return EvaluationBatch(
            outputs=[None] * len(batch),
            scores=[rollout.reward for rollout in rollouts],
            trajectories=rollouts if capture_traces else None,
        )

    def on_valset_evaluated(self, event: Any) -> None:
        """GEPA's callback: a candidate was evaluated on the validation tasks."""
        if event["is_best_program"]:
            self._worker.best = event["candidate"][PROMPT]

    def make_reflective_dataset(
        self, candidate: Candidate, eval_batch: EvaluationBatch[Rollout, None], components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        room = self._job.reflection_chars - len(candidate[PROMPT])
        shown = examples(eval_batch.trajectories or [], shows_system=self._job.place == "before", room=room)
        return dict.fromkeys(components_to_update, shown)


TEMPLATE_CHARS = 2000
"""GEPA's own words, and the headings of the examples."""
LENGTHS = (4000, 2000, 1000, 500, 250, 120, 60)
"""Characters of a text; the first that leaves room is taken."""

Example = dict[str, Any]


def examples(rollouts: list[Rollout], *, shows_system: bool, room: int) -> list[Example]:
    """Rollouts as the reflection model reads them: long texts are cut to the same length each, and every cut says how
    much is missing. `shows_system`: the environment's own system message stays beside the prompt."""
    for length in LENGTHS:
        shown = [_example(rollout, shows_system, length) for rollout in rollouts]
        if sum(len(json.dumps(one, ensure_ascii=False)) for one in shown) <= room - TEMPLATE_CHARS:
            break
    return shown


def _example(rollout: Rollout, shows_system: bool, length: int) -> Example:
    messages = rollout.messages
    first = next((n for n, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    system = [message["content"] for message in messages[:first] if message["role"] == "system"]
    opening = [message for message in messages[:first] if message["role"] != "system"]
    inputs = {"Conversation until the assistant's first answer": _transcript(opening, length)}
    if system and shows_system:
        inputs = {"System message that follows the instructions": _cut("\n".join(system), length), **inputs}
    return {
        "Inputs": inputs,
        "Generated Outputs": _transcript(messages[first:], length),
        "Feedback": _feedback(rollout, length),
    }


def _transcript(messages: list[dict[str, Any]], length: int) -> str:
    lines = []
    for message in messages:
        if message["content"]:
            lines.append(f"{message['role']}: {_cut(message['content'], length)}")
        for call in message.get("toolCalls") or []:
            lines.append(f"{message['role']} calls {call['name']}({_cut(_json(call['arguments']), length)})")
    return "\n".join(lines) or "(nothing)"


def _feedback(rollout: Rollout, length: int) -> str:
    outcome = "the task is solved" if rollout.reward >= 1 else "the task is not solved"
    lines = [f"Reward {rollout.reward:g} of 1: {outcome}. The conversation ended by {rollout.stop_reason}."]
    if rollout.reference:
        actions = "; ".join(f"{one['name']}({_json(one['arguments'])})" for one in rollout.reference["actions"])
        told = "; ".join(rollout.reference["tell"])
        lines.append(f"A right solution does: {_cut(actions, length) or 'nothing'}.")
        lines.append(f"It tells the user: {_cut(told, length) or 'nothing in particular'}.")
    return "\n".join(lines)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, length: int) -> str:
    """The beginning of a text, and how much is missing."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text) - length} more characters)"
