"""The search for a prompt, as a process beside a scripted worker whose rollouts are a function of prompt and task."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.tests.train_harness import Learner, Message, as_lines
from trainer.tests.train_harness import Worker as LearnersWorker

TASKS = [f"t{number}" for number in range(8)]


def make_job(output: Path, **changes: Any) -> Message:
    job = {
        "output_dir": str(output),
        "seed": 3,
        "train": TASKS[:5],
        "validation": TASKS[5:],
        "prompt": "",
        "place": "before",
        "minibatch_size": 2,
        "acceptance": "strict_improvement",
        "reflection_chars": 40_000,
    }
    return {**job, **changes}


def reward_of(prompt: str, task: str) -> float:
    """More with every word of the prompt, sooner on tasks of lower number."""
    return min(1.0, round(0.2 + 0.1 * len(prompt.split()) - 0.02 * int(task[1:]), 2))


def reply_by_test(question: str, times: int) -> str:
    """Stands for the reflection model, written for this test: one word more than it is shown."""
    shown = question.split("```")[1].split()
    return f"```\n{' '.join([*shown, f'word{times}'])}\n```"


class Worker(LearnersWorker):
    """Keeps rollouts and replies from run to run, as the store and the ledger do."""

    def __init__(
        self,
        folder: Path,
        job: Message,
        *,
        cap: int = 60,
        reply: Callable[[str, int], str | None] = reply_by_test,
    ):
        super().__init__(folder, job, program="gepa")
        self.cap, self.reply = cap, reply
        self.made: list[tuple[str, str]] = []
        self.paid: list[tuple[str, int]] = []
        self.kept: dict[tuple[str, int], str | None] = {}
        self.asked: dict[str, int] = {}
        self.broken = ""
        """A type of request that can't be answered."""

    def run(self, on_message: Any = lambda message, learner: None, *, before: str = "") -> Worker:
        self.asked = {}
        return super().run(on_message, before=before)

    def run_until(self, request: int, act: Callable[[Learner], Any]) -> Worker:
        """Does something to the search in place of answering its request of that number."""

        def on_message(message: Message, learner: Learner) -> bool | None:
            if message["type"] in ("rollouts", "reply") and message["id"] == request + 1:
                act(learner)
                return False
            return None

        return self.run(on_message)

    def answer(self, request: Message) -> str:
        answer = {"type": "error", "message": "no server"}
        if request["type"] != self.broken:
            answer = self._rollouts(request) if request["type"] == "rollouts" else self._reply(request)
        return json.dumps({"id": request["id"], **answer})

    def _rollouts(self, request: Message) -> Message:
        prompt = request["policy"].get("prompt", {}).get("text", "")
        assert (request["group_size"], request["content"]) == (1, "messages")
        assert len(set(request["tasks"])) == len(request["tasks"])
        new = [(prompt, task) for task in request["tasks"] if (prompt, task) not in self.made]
        if len(self.made) + len(new) > self.cap:
            return {"type": "spent"}
        self.made += new
        file = self.folder / "batch.jsonl"
        file.write_text(as_lines([self.rollout(prompt, task) for task in request["tasks"]]))
        return {"type": "rollouts", "file": str(file)}

    def rollout(self, prompt: str, task: str) -> Message:
        messages = [{"role": "user", "content": f"do {task}"}, {"role": "assistant", "content": "there is a box"}]
        return {"task": task, "messages": messages, "reward": reward_of(prompt, task), "stopReason": "user_stop"}

    def _reply(self, request: Message) -> Message:
        question = request["messages"][0]["content"]
        times = self.asked[question] = self.asked.get(question, 0) + 1
        assert request["again"] == times - 1
        if (question, times) not in self.kept:
            self.paid.append((question, times))
            self.kept[question, times] = self.reply(question, times)
        text = self.kept[question, times]
        return {"type": "no_reply", "problem": "it is empty"} if text is None else {"type": "reply", "text": text}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    return Worker(folder, make_job(folder)).run()


def test_search_ends_with_its_best_prompt_when_the_rollouts_are_spent(whole):
    worker = whole
    assert worker.exit_code == 0
    assert worker.messages[0] == {"type": "ready", "step": 0}
    steps = worker.of_type("step")
    assert worker.messages[-1] == {"type": "done", "step": len(steps)}
    # Step by step, and a checkpoint after each: first the base model, in the end the longest prompt.
    assert [message["step"] for message in steps] == list(range(1, len(steps) + 1))
    checkpoints = worker.of_type("checkpoint")
    assert [message["step"] for message in checkpoints] == [message["step"] for message in steps]
    assert checkpoints[0]["policy"] == {"base": True}
    best = checkpoints[-1]["policy"]["prompt"]
    assert (best["place"], len(best["text"].split()) >= 3) == ("before", True)
    lines = [json.loads(line) for line in (worker.folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"step": message["step"], **message["metrics"]} for message in steps]
    # Nothing is asked for twice, and the cap is where it ended.
    assert len(worker.made) == len(set(worker.made)) <= worker.cap
    assert lines[-1]["rollouts"] == len(worker.made)
    # The tasks that prompts are written from are not those that they are chosen by.
    train = {task for request in worker.of_type("rollouts")[1:2] for task in request["tasks"]}
    assert train <= set(TASKS[:5])


def test_asked_to_stop_it_says_where_it_is(tmp_path):
    worker = Worker(tmp_path, make_job(tmp_path)).run_until(4, Learner.terminate)
    assert worker.exit_code == 0
    assert worker.messages[-1] == {"type": "interrupted", "step": len(worker.of_type("step"))}


def test_a_reflection_model_without_a_usable_reply_ends_the_search_once_nothing_is_new(tmp_path):
    worker = Worker(tmp_path, make_job(tmp_path), reply=lambda question, times: None).run()
    assert worker.exit_code == 0
    assert worker.of_type("done")
    assert worker.of_type("checkpoint")[-1]["policy"] == {"base": True}
    assert {prompt for prompt, _ in worker.made} == {""}
    # GEPA tries once more after each refusal, which pays for no second question.
    refused = (tmp_path / "stderr.log").read_text().count("Per-task reflection failed")
    assert refused == len(worker.of_type("reply")) > 1


def test_solved_tasks_end_the_search(tmp_path):
    prompt = " ".join(["word"] * 12)
    worker = Worker(tmp_path, make_job(tmp_path, prompt=prompt, place="instead"), cap=10_000).run()
    assert worker.of_type("done")
    assert worker.of_type("reply") == []
    assert worker.of_type("checkpoint")[-1]["policy"] == {"prompt": {"text": prompt, "place": "instead"}}


@pytest.mark.parametrize("broken", ["rollouts", "reply"])
def test_a_worker_that_can_not_answer_ends_it_with_an_error(tmp_path, broken):
    """GEPA itself survives an exception of its reflection model."""
    worker = Worker(tmp_path, make_job(tmp_path))
    worker.broken = broken
    assert worker.run().exit_code == 1
    error = worker.messages[-1]["error"]
    assert error["type"] == "RolloutsFailed" and error["message"].endswith(": no server")
