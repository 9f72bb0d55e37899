"""Trainings in several processes (`processes`): they compute the result of one process, and end and resume together."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from trainer.tests.train_harness import WEIGHTS, Learner, Message, Worker, make_job, sample_group

slow = pytest.mark.slow


def of_ranks(base: Path, folder: Path, processes: int, **changes: Any) -> Worker:
    """A training whose micro-batches are small enough for each rank to have several, at the demo's learning rate."""
    sizes = {"processes": processes, "threads": processes, "tokens_per_forward": 40, "learning_rate": 0.002}
    job = make_job(base, folder / "out", **{**sizes, **changes})
    return Worker(folder, job)


@pytest.fixture(scope="module")
def alone(tiny_model_dir, tmp_path_factory):
    return of_ranks(tiny_model_dir, tmp_path_factory.mktemp("alone"), 1).run()


@pytest.fixture(scope="module")
def together(tiny_model_dir, tmp_path_factory):
    return of_ranks(tiny_model_dir, tmp_path_factory.mktemp("together"), 2).run()


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=slow)])
def test_several_processes_train_like_one(alone, together, tiny_model_dir, tmp_path, processes):
    run = together if processes == 2 else of_ranks(tiny_model_dir, tmp_path, processes).run()
    assert run.exit_code == 0, run.stderr
    for one, other in zip(alone.metrics(), run.metrics(), strict=True):
        for name in ("loss", "grad_norm", "reward", "rows", "loss_tokens", "logprob_gap"):
            assert other[name] == pytest.approx(one[name], rel=1e-4, abs=1e-6), name
    weights, others = (load_file(one.output / "checkpoint-4" / WEIGHTS) for one in (alone, run))
    assert max((weights[name] - others[name]).abs().max().item() for name in weights) < 1e-5


@pytest.mark.parametrize("processes", [1, 2])
def test_a_training_that_diverges_names_a_token_and_the_learning_rate(tiny_model_dir, tmp_path, processes):
    run = of_ranks(tiny_model_dir, tmp_path, processes, learning_rate=1e30)
    base = AutoModelForCausalLM.from_pretrained(tiny_model_dir)

    def by_the_base(message: Message, learner: Learner) -> str | None:
        if message["type"] != "rollouts":
            return None
        rollouts = [one for task in message["tasks"] for one in sample_group(base, task, message["group_size"])]
        return run.write_batch(message, rollouts)

    run.run(by_the_base)
    assert run.messages[-1]["error"]["type"] == "Diverged"
    said = run.messages[-1]["error"]["message"]
    assert re.search(r"at step 2: line \d+ rows\.0 token \d+ has log-prob nan.*lower learning_rate", said), said


def ranks_of(learner: Learner) -> list[int]:
    """Process ids of a learner's other ranks."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"PPid:\t{learner.process.pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("phase", "killed"),
    [
        ("update", "rank 1"),
        *(
            pytest.param(*how, marks=slow)
            for how in (("rollouts", "rank 0"), ("ready", "rank 1"), ("update", "rank 0"), ("step", "rank 1"))
        ),
    ],
)
def test_one_that_is_killed_ends_them_all_and_the_next_attempt_makes_the_same_bytes(
    tiny_model_dir, tmp_path, together, phase, killed
):
    run, others = of_ranks(tiny_model_dir, tmp_path, 2), []

    def kill(message: Message, learner: Learner) -> bool | None:
        if others:
            return False  # what it wrote before it died
        at = {"ready": ("ready", 0), "step": ("step", 2)}.get(phase, ("rollouts", 2))  # what follows a step is saving
        if (message["type"], message["step"]) != at:
            return None
        others.extend(ranks_of(learner))
        pid = learner.process.pid if killed == "rank 0" else others[0]
        if phase == "update":
            learner.stdin.write(run.answer(message) + "\n")
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        return False

    run.run(kill)
    assert run.exit_code != 0 and len(others) == 1
    deadline = time.monotonic() + 30
    while any(map(is_there, others)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_there, others))
    assert run.again().exit_code == 0
    assert len(list(run.output.glob(".ranks-*"))) == 1
    assert run.adapter_bytes(4) == together.adapter_bytes(4)


@pytest.mark.parametrize(
    ("processes", "said"), [(1, "CUDA_VISIBLE_DEVICES '5': torch finds no GPU"), (2, "names 1 GPUs; name one each")]
)
def test_gpus_that_are_not_there_are_refused(tiny_model_dir, tmp_path, processes, said):
    one = "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '5'"
    run = of_ranks(tiny_model_dir, tmp_path, processes).run(before=one)
    assert run.exit_code == 1 and said in run.of_type("error")[0]["error"]["message"]
