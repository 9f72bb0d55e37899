"""A synthesized environment behind its program, as exported packages play it, however often that program ends."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bridges.exported.process import EnvironmentFailed, Program

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "prompts" / "examples" / "pages.js"


@pytest.fixture
def program(monkeypatch):
    monkeypatch.setenv("CAMPAIGN", f"node {ROOT / 'bin' / 'campaign'}")
    return Program(MODULE)


def solved(program, seed, *, steps=None):
    """Reward of the reference actions, each a message with one call, until the episode is over."""
    episode = program.request("reset", task={"id": f"seed-{seed}", "seed": 0})["episode"]
    reference = program.request("evaluate", episode=episode, reason="user_stop")["reference"]
    for number, action in enumerate(reference["actions"][:steps]):
        message = {"role": "assistant", "content": "", "toolCalls": [{"id": f"c{number}", **action}]}
        program.request("step", episode=episode, message=message)
    reward = program.request("evaluate", episode=episode, reason="user_stop")["reward"]
    program.request("close", episode=episode)
    return reward


def test_many_threads_share_one_program_and_each_has_its_own_episode(program):
    with ThreadPoolExecutor(8) as threads:
        played = list(threads.map(lambda n: solved(program, n // 2, steps=[0, None][n % 2]), range(16)))
    assert played == [solved(program, n // 2, steps=[0, None][n % 2]) for n in range(16)]
    assert len(set(played)) > 1


def test_a_refusal_names_the_field(program):
    with pytest.raises(EnvironmentFailed, match=r"task\.id"):
        program.request("reset", task={"seed": 0})


@pytest.mark.parametrize(
    ("split", "problem"),
    [(float("nan"), "tasks: Out of range float"), ("x" * 20_000_000, "a line is longer")],
    ids=["no JSON", "too long"],
)
def test_an_unreadable_answer_is_an_error(program, split, problem):
    with pytest.raises(EnvironmentFailed, match=problem):
        program.request("tasks", split=split)
    assert solved(program, 1) == solved(program, 1)


def test_its_end_fails_waiting_requests_and_the_next_one_starts_it_again(program):
    episode = program.request("reset", task={"id": "seed-1", "seed": 0})["episode"]
    os.kill(program._process.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFailed, match=r"exit code -9|no open episode"):
        program.request("evaluate", episode=episode, reason="user_stop")
    assert solved(program, 1) == solved(program, 1)
