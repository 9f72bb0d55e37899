"""The trainer as a process: protocol, checkpoints, kill -9, SIGTERM, end of file, errors."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from trainer.tests.train_harness import (
    CONFIG,
    WEIGHTS,
    Learner,
    Message,
    OnMessage,
    Worker,
    at,
    make_job,
    rollouts_of,
)
from trainer.train.checkpoint import LEAVE_SECONDS, FolderBusy, cut_metrics, is_whole, only_trainer, whole_ones

STEPS = 5  # with a checkpoint every 2, the last one is not at a multiple


@pytest.fixture(scope="module")
def uninterrupted(tiny_model_dir, tmp_path_factory):
    return worker(tiny_model_dir, tmp_path_factory.mktemp("uninterrupted")).run()


def worker(base: Path, folder: Path, **changes: Any) -> Worker:
    return Worker(folder, make_job(base, folder / "out", **{"steps": STEPS, **changes}))


@pytest.fixture
def start(tiny_model_dir, tmp_path):
    return partial(worker, tiny_model_dir, tmp_path)


def last_whole(output: Path) -> tuple[int, Path | None]:
    return next(whole_ones(output), (0, None))


def asked(run: Worker) -> dict[int, list[str]]:
    return {message["step"]: message["tasks"] for message in run.of_type("rollouts")}


def assert_goes_on_to_the_same_end(run: Worker, uninterrupted: Worker, ready: int) -> None:
    """Runs the job again: it starts at step `ready`, asks for the same tasks and ends with the same bytes."""
    again = run.again()
    assert again.exit_code == 0, again.stderr
    assert again.messages[0] == {"type": "ready", "step": ready}
    if is_whole(run.output / f"checkpoint-{ready}"):  # sent again
        assert {k: again.messages[1][k] for k in ("type", "step")} == {"type": "checkpoint", "step": ready}
    assert asked(again) == {step: tasks for step, tasks in asked(uninterrupted).items() if step >= ready}
    assert again.adapter_bytes(STEPS) == uninterrupted.adapter_bytes(STEPS)
    assert [line["step"] for line in again.metrics()] == list(range(1, STEPS + 1))


def test_a_whole_run(uninterrupted):
    assert uninterrupted.exit_code == 0, uninterrupted.stderr
    kinds = [message["type"] for message in uninterrupted.messages if message["type"] != "progress"]
    twice = ["rollouts", "step"] * 2
    assert kinds == ["ready", *twice, "checkpoint", *twice, "checkpoint", *twice[:2], "checkpoint", "done"]
    assert uninterrupted.messages[0] == {"type": "ready", "step": 0}
    assert uninterrupted.messages[-1] == {"type": "done", "step": STEPS}
    request = uninterrupted.of_type("rollouts")[0]
    assert request.keys() == {"type", "id", "step", "tasks", "group_size", "policy"}
    metrics = uninterrupted.of_type("step")[0]["metrics"]
    assert metrics["logprob_gap"] < 1e-5
    assert (metrics["informative_groups"], metrics["learning_rate"]) == (2, 0.01)
    assert metrics["grad_norm"] > 0
    assert metrics["b_norm"] > 0
    for message in uninterrupted.of_type("checkpoint"):
        folder = Path(message["policy"]["adapter"])
        assert is_whole(folder)
        assert {CONFIG, WEIGHTS, "optimizer.pt", "scheduler.pt"} <= {file.name for file in folder.iterdir()}
    weights = load_file(folder / WEIGHTS)
    assert all(tensor.abs().max() > 0 for name, tensor in weights.items() if "lora_B" in name)


def test_progress_is_sent_for_micro_batches(start):
    at_once = "import trainer.train.channel as channel; channel.TELL_SECONDS = 0"
    run = start(steps=2, tokens_per_forward=30).run(before=at_once)
    told = [(message["step"], message["done"], message["total"]) for message in run.of_type("progress")]
    total = told[0][2]
    assert total > 1
    assert told == [(step, done, total) for step in (0, 1) for done in range(1, total + 1)]


def answering(run: Worker, change: Callable[[Message, list[Message]], None]) -> OnMessage:
    """Rollouts as `change` leaves those of a request."""

    def on_message(message: Message, learner: Learner) -> str | None:
        if message["type"] != "rollouts":
            return None
        rollouts = rollouts_of(run.answer(message))
        change(message, rollouts)
        return run.write_batch(message, rollouts)

    return on_message


def test_another_model_behind_the_policy_server_ends_it_at_the_first_step(start):
    run = start()

    def other(_: Message, rollouts: list[Message]) -> None:
        for row in (rollout["rows"][0] for rollout in rollouts):
            row["logprobs"] = [2 * logprob for logprob in row["logprobs"]]

    run.run(answering(run, other))
    assert run.exit_code == 1
    assert run.messages[-1]["error"]["type"] == "SamplerDiffers"
    assert last_whole(run.output) == (0, None)


# A step takes one fsync, a checkpoint nine: the process kills itself at the fourth of the second checkpoint.
IN_A_CHECKPOINT = """
import os, signal
real, calls = os.fsync, []
def fsync(handle):
    calls.append(handle)
    if len(calls) == 17: os.kill(os.getpid(), signal.SIGKILL)
    real(handle)
os.fsync = fsync
"""
DISTURBANCES = {
    "killed while a checkpoint is written": (lambda message, learner: None, -9, 2),
    "killed while rollouts are made, before a checkpoint": (at(1, Learner.kill), -9, 0),
    "killed while rollouts are made, after one": (at(3, Learner.kill), -9, 2),
    "SIGTERM while rollouts are made": (at(3, Learner.terminate), 0, 3),
    # Nothing is answered any more.
    "SIGTERM before the first step": (lambda *given: bool(at(0, Learner.terminate, "ready")(*given)), 0, 0),
    "end of file on stdin": (at(1, lambda learner: learner.stdin.close()), 0, 1),
}


@pytest.mark.parametrize("how", DISTURBANCES)
def test_after_any_end_the_next_attempt_gives_the_same_bytes(start, uninterrupted, how):
    on_message, exit_code, step = DISTURBANCES[how]
    torn = "checkpoint is written" in how
    run = start().run(on_message, before=IN_A_CHECKPOINT if torn else "")
    assert run.exit_code == exit_code, run.stderr
    assert (run.output / ".partial" / "checkpoint-4").exists() == torn
    if exit_code == 0:
        assert run.messages[-2]["type"] == "checkpoint"
        assert run.messages[-1] == {"type": "interrupted", "step": step}
        assert last_whole(run.output) == (step, run.output / f"checkpoint-{step}")
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=step)


def test_a_job_that_is_done_is_done(uninterrupted):
    again = uninterrupted.again()
    last = str((again.output / f"checkpoint-{STEPS}").resolve())
    assert again.messages == [
        {"type": "ready", "step": STEPS},
        {"type": "checkpoint", "step": STEPS, "policy": {"adapter": last}},
        {"type": "done", "step": STEPS},
    ]


def test_another_job_does_not_continue_a_checkpoint(uninterrupted):
    refused = Worker(uninterrupted.folder, {**uninterrupted.job, "learning_rate": 0.5}).run()
    assert refused.exit_code == 1
    error = refused.messages[-1]["error"]
    assert error["type"] == "BadJob" and "output_dir" in error["message"]


def test_failures_of_the_worker_end_the_training_with_its_state_saved(start, uninterrupted):
    """Each begins where the one before it ended, and nothing of it shows in the end."""
    run = start()

    def answering(step: int, make: Any) -> Any:
        return lambda m, _: make(m) if m["type"] == "rollouts" and m["step"] == step else None

    def torn(message: Message) -> str:
        answer = run.answer(message)
        file = Path(json.loads(answer)["file"])
        file.write_bytes(file.read_bytes()[:-20])
        return answer

    failure = {"type": "error", "message": "policy server\nis down"}
    for step, kind, words, make in (
        (1, "RolloutsFailed", "step 1: policy server is down", lambda m: json.dumps({**failure, "id": m["id"]})),
        (2, "DamagedBatch", "holds 0 rollouts of 8", lambda m: run.write_batch(m, [])),
        (3, "DamagedBatch", "whole JSON object", torn),
    ):
        run.run(answering(step, make))
        assert run.exit_code == 1
        error = run.messages[-1]["error"]
        assert error["type"] == kind and words in error["message"]
        assert is_whole(run.output / f"checkpoint-{step}")
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=3)


FULL_DISK = """
import errno, os
{}
def full(*arguments, **options): raise {}
"""
NO_ROOM = "OSError(errno.ENOSPC, 'No space left on device')"
# Errors of the two libraries that write files of a checkpoint; Python writes the other files.
TORCH_NO_ROOM = "RuntimeError('[enforce fail] PytorchStreamWriter failed writing file data/0: file write failed')"
SAFETENSORS_NO_ROOM = "RuntimeError('I/O error: No space left on device (os error 28)')"


@pytest.mark.parametrize(
    ("imports", "error", "replaced"),
    [
        # The sixth flush is in the checkpoint of step 2, after the lines of two steps.
        (
            "real, calls = os.fsync, []",
            NO_ROOM,
            "os.fsync = lambda file: full() if calls.append(file) or len(calls) > 5 else real(file)",
        ),
        ("import torch", TORCH_NO_ROOM, "torch.save = full"),
        ("import trainer.train.model as model", SAFETENSORS_NO_ROOM, "model.save_file = full"),
    ],
    ids=["python", "torch", "safetensors"],
)
def test_a_full_disk_is_said_and_nothing_half_written_stays(start, imports, error, replaced):
    run = start().run(before=FULL_DISK.format(imports, error) + replaced)
    assert run.exit_code == 1
    assert run.messages[-1]["error"]["type"] == "DiskFull", run.stderr
    assert not run.of_type("checkpoint")
    assert not list((run.output / ".partial").glob("checkpoint-*"))
    assert last_whole(run.output) == (0, None)


def test_memory_that_runs_out_is_said_with_the_fix(start):
    full = """
import trainer.train.grpo as run
def full(*arguments, **options): raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
run.micro_batches = full
"""
    run = start().run(before=full)
    error = run.messages[-1]["error"]
    assert error["type"] == "OutOfMemory" and "lower training.tokensPerForward" in error["message"]


def test_a_log_that_can_not_be_written_ends_no_training(start):
    """Stderr is a full disk, and the trainer writes to it."""
    chatty = """
import os, sys, trainer.train.grpo as run
os.dup2(os.open('/dev/full', os.O_WRONLY), 2)
def talking(*given):
    print('x' * 99999, flush=True)
    print('y', file=sys.stderr)
    return real(*given)
real, run.training_batch = run.training_batch, talking
"""
    run = start(steps=2).run(before=chatty)
    assert run.exit_code == 0
    assert run.messages[-1] == {"type": "done", "step": 2}


def test_metrics_are_cut_back_to_whole_lines_of_finished_steps(tmp_path):
    file = tmp_path / "metrics.jsonl"

    def line(step: int) -> bytes:
        return json.dumps({"step": step, "reward": 0.5}).encode() + b"\n"

    file.write_bytes(line(1) + line(2) + b"\x00\xff\x00\n" + line(4) + b'["no object"]\n' + line(5) + line(6)[:9])
    cut_metrics(tmp_path, 4)
    assert file.read_bytes() == line(1) + line(2) + line(4)
    file.unlink()
    cut_metrics(tmp_path, 1)
    assert file.read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_a_step_trains_on_the_groups_that_the_answer_names(start):
    run = start(steps=2)

    def partial(message: Message, _: Any) -> str | None:
        if message["type"] != "rollouts":
            return None
        kept = message["tasks"][1:]
        assert kept
        return json.dumps({**json.loads(run.answer({**message, "tasks": kept})), "tasks": kept})

    run.run(partial)
    assert run.exit_code == 0, run.stderr
    groups = [message["metrics"]["informative_groups"] for message in run.of_type("step")]
    assert groups == [run.job["groups_per_step"] - 1] * 2


@pytest.mark.parametrize(
    "changes",
    [
        {"kl": 0.1, "advantage": "batch", "gradient_checkpointing": True},
        {"dtype": "bfloat16", "tokens_per_forward": 50},
        {"learning_rate": 0},
    ],
)
def test_other_settings_train(start, changes):
    run = start(steps=2, **changes).run()
    assert run.exit_code == 0, run.stderr
    assert all(message["metrics"]["grad_norm"] > 0 for message in run.of_type("step"))
    weights = load_file(run.output / "checkpoint-2" / WEIGHTS)
    moved = [bool(tensor.abs().max() > 0) for name, tensor in weights.items() if "lora_B" in name]
    assert set(moved) == {changes.get("learning_rate") != 0}


def test_a_torn_checkpoint_is_passed_over(uninterrupted, tmp_path):
    """As after a power loss: the newest checkpoint has a file that is too short, or no manifest."""
    output = tmp_path / "out"
    shutil.copytree(uninterrupted.output, output)
    optimizer = output / f"checkpoint-{STEPS}" / "optimizer.pt"
    optimizer.write_bytes(optimizer.read_bytes()[:-1])
    assert last_whole(output) == (4, output / "checkpoint-4")
    (output / "checkpoint-4" / "manifest.json").unlink()
    assert last_whole(output) == (2, output / "checkpoint-2")


def test_a_folder_is_locked_while_a_trainer_works_in_it(tmp_path):
    with (tmp_path / ".lock").open("w") as other:
        with only_trainer(tmp_path), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_UN)
    said = pytest.raises(FolderBusy, match=f"the trainer with pid {os.getpid()} works there")
    with only_trainer(tmp_path), said, only_trainer(tmp_path, wait=0.3):
        raise AssertionError("two trainers in one folder")
    # The shortest workers.heartbeatSeconds, and PATIENCE of src/training/learner-process.ts: else it looks like a hang.
    assert LEAVE_SECONDS + 2 < 20 * 0.8
