"""Rollouts that are made a step ahead (`steps_ahead`): while the step before is trained, by the policy from before it,
and by the same one after any end of the trainer."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from trainer.tests.train_harness import WEIGHTS, Learner, Message, Worker, make_job

STEPS = 4


def ahead(base: Path, folder: Path, **changes: Any) -> Worker:
    return Worker(folder, make_job(base, folder / "out", **{"steps": STEPS, "steps_ahead": 1, **changes}))


class Policies:
    """Weights by step of the request that named them, in every attempt."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, bytes]] = []

    def __call__(self, message: Message, learner: Learner) -> None:
        if message["type"] == "rollouts":
            weights = (Path(message["policy"]["adapter"]) / WEIGHTS).read_bytes()
            self.asked.append((message["step"], message.get("ahead", 0), weights))


@pytest.fixture(scope="module")
def undisturbed(tiny_model_dir, tmp_path_factory):
    """What was asked ahead is answered once the step is done that it was asked before."""
    run, policies = ahead(tiny_model_dir, tmp_path_factory.mktemp("ahead")), Policies()
    owed: list[Message] = []

    def late(message: Message, learner: Learner) -> bool | str | None:
        policies(message, learner)
        if message["type"] == "rollouts" and message["step"] > 0:
            owed.append(message)
            return False
        if message["type"] == "step" and owed:
            assert message["step"] == owed[0]["step"]
            return run.answer(owed.pop())
        return None

    return run.run(late), policies


def test_a_step_is_trained_while_the_next_ones_rollouts_are_made(undisturbed):
    run, _ = undisturbed
    assert run.exit_code == 0, run.stderr
    told = [(one["type"], one["step"]) for one in run.messages if one["type"] in ("rollouts", "step")]
    assert told == [
        *(("rollouts", 0), ("rollouts", 1), ("step", 1), ("rollouts", 2), ("step", 2)),
        *(("rollouts", 3), ("step", 3), ("step", 4)),
    ]
    assert [metrics["step"] for metrics in run.metrics()] == [1, 2, 3, 4]


def test_policies_are_one_update_old_and_the_ratio_is_to_them(undisturbed):
    run, policies = undisturbed
    assert [(step, is_ahead) for step, is_ahead, _ in policies.asked] == [(0, 0), (1, 1), (2, 1), (3, 1)]
    weights = [weights for _, _, weights in policies.asked]
    assert weights[0] == weights[1] and weights[3] == run.adapter_bytes(2)
    # Of rollouts that the trained policy has made itself only round-off is left.
    gaps = [metrics["logprob_gap"] for metrics in run.metrics()]
    assert gaps[0] < 1e-5 < 1e-4 < min(gaps[1:])


@pytest.mark.parametrize(
    ("type", "step", "number"),
    [("rollouts", 2, signal.SIGKILL), ("step", 3, signal.SIGKILL), ("checkpoint", 2, signal.SIGTERM)],
)
def test_after_any_end_the_same_is_asked_of_the_same_policies(
    tiny_model_dir, tmp_path, undisturbed, type, step, number
):
    whole, expected = undisturbed
    run, policies = ahead(tiny_model_dir, tmp_path), Policies()

    def end(message: Message, learner: Learner) -> bool | None:
        policies(message, learner)
        if (message["type"], message["step"]) != (type, step):
            return None
        os.kill(learner.process.pid, number)
        return False

    run.run(end)
    assert (run.exit_code == 0) == (number == signal.SIGTERM)
    assert run.run(policies).exit_code == 0, run.stderr
    assert run.messages[0]["step"] > 0 or type == "rollouts"
    assert set(policies.asked) == set(expected.asked)
    assert run.adapter_bytes(STEPS) == whole.adapter_bytes(STEPS)


def test_two_processes_read_a_batch_before_the_next_is_asked_for(tiny_model_dir, tmp_path, undisturbed):
    run = ahead(tiny_model_dir, tmp_path, processes=2)

    def over_the_last(message: Message, learner: Learner) -> str | None:
        """As the worker, which has one batch file."""
        if "tasks" not in message:
            return None
        return run.answer({**message, "id": 1}).replace('"id": 1', f'"id": {message["id"]}')

    assert run.run(over_the_last).exit_code == 0, run.stderr
    assert [m["rows"] for m in run.metrics()] == [m["rows"] for m in undisturbed[0].metrics()]
