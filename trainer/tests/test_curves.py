"""Curves of real trainings in TensorBoard and W&B, read back with the readers of each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.command import BadInput
from trainer.tests.train_harness import Learner, Message, Worker, at, make_job, parse_job

STEPS = 4
# A forked process calls no exit functions by itself, and wandb ends its run in one.
OFFLINE = """
import atexit, os
from multiprocessing.util import Finalize
os.environ["WANDB_MODE"] = "offline"
Finalize(None, atexit._run_exitfuncs, exitpriority=0)
"""
Points = list[tuple[str, int, float]]


def killed_and_resumed(base: Path, folder: Path, tool: str) -> Worker:
    """Runs a training that is killed after its third step, whose last checkpoint is the second's; then runs it to its
    end."""
    run = Worker(folder, make_job(base, folder / "out", steps=STEPS, report_to=tool, kl=0.1))
    run.run(at(3, Learner.kill), before=OFFLINE)
    assert [line["step"] for line in run.metrics()] == [1, 2, 3], run.stderr
    run.run(before=OFFLINE)
    assert run.exit_code == 0, run.stderr
    assert run.messages[0] == {"type": "ready", "step": 2}
    return run


def expected(run: Worker) -> Points:
    lines = run.metrics()
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert {"loss", "reward", "kl", "grad_norm", "learning_rate", "entropy", "rollouts"} <= lines[0].keys()
    return sorted(
        (f"train/{name}", line["step"], pytest.approx(value, rel=1e-6))
        for line in lines
        for name, value in line.items()
        if name != "step"
    )


def test_a_resumed_training_has_each_step_once_in_tensorboard(tiny_model_dir, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = killed_and_resumed(tiny_model_dir, tmp_path, "tensorboard")
    events = EventAccumulator(str(run.output / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    found = [(tag, at.step, at.value) for tag in events.Tags()["scalars"] for at in events.Scalars(tag)]
    assert sorted(found) == expected(run)


def test_a_resumed_training_has_each_step_once_in_wandb(tiny_model_dir, tmp_path):
    pytest.importorskip("wandb", reason=f"run `{sys.executable} -m pip install wandb`")
    run = killed_and_resumed(tiny_model_dir, tmp_path, "wandb")
    # Each attempt writes a file of its own; the last holds the whole curve.
    [*_, last] = sorted((run.output / "wandb").glob("offline-run-*-out/*.wandb"), key=lambda file: file.stat().st_mtime)
    env = {**os.environ, "WANDB_ERROR_REPORTING": "false"}
    read = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(last)]
    lines = subprocess.run(read, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout.splitlines()
    rows: list[Message] = [json.loads(line).get("history", {}).get("item") for line in lines if line.startswith(b"{")]
    found = [
        (tag, row["train/global_step"], value)
        for row in filter(None, rows)
        for tag, value in row.items()
        if not tag.startswith("_") and tag != "train/global_step"
    ]
    assert sorted(found) == expected(run)


def test_a_missing_package_is_named_with_the_command_that_installs_it(tiny_model_dir, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadInput, match=f"^report_to .*{sys.executable} -m pip install wandb"):
        parse_job(make_job(tiny_model_dir, tmp_path, report_to="wandb"))
