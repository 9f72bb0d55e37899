"""The trainer as a process: protocol, checkpoints, kill -9, SIGTERM, end of file, errors."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file

from trainer.tests.train_harness import Message, Worker, make_job, terminate
from trainer.train.checkpoint import LEAVE_SECONDS, FolderBusy, is_whole, last_whole, only_trainer
from trainer.train.metrics import cut_metrics

STEPS = 5  # with a checkpoint every 2, the last one is not at a multiple


@pytest.fixture(scope="module")
def uninterrupted(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Worker:
    folder = tmp_path_factory.mktemp("uninterrupted")
    return Worker(folder, make_job(tiny_model_dir, folder / "out", steps=STEPS)).run()


def worker(tiny_model_dir: Path, tmp_path: Path) -> Worker:
    return Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=STEPS))


def adapter_bytes(run: Worker, step: int = STEPS) -> bytes:
    return (run.folder / "out" / f"checkpoint-{step}" / "adapter_model.safetensors").read_bytes()


def asked(run: Worker) -> dict[int, list[str]]:
    return {message["step"]: message["tasks"] for message in run.of_type("rollouts")}


def assert_goes_on_to_the_same_end(run: Worker, uninterrupted: Worker, ready: int) -> None:
    """Runs the job again: it starts at step `ready`, asks for the same tasks and ends with the same bytes."""
    again = Worker(run.folder, run.job).run()
    assert again.exit_code == 0, again.stderr
    assert again.messages[0] == {"type": "ready", "step": ready}
    if is_whole(run.folder / "out" / f"checkpoint-{ready}"):  # told again
        assert {k: again.messages[1][k] for k in ("type", "step")} == {"type": "checkpoint", "step": ready}
    assert asked(again) == {step: tasks for step, tasks in asked(uninterrupted).items() if step >= ready}
    assert adapter_bytes(again) == adapter_bytes(uninterrupted)
    lines = [json.loads(line) for line in (run.folder / "out" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))


def test_a_whole_run(uninterrupted: Worker) -> None:
    assert uninterrupted.exit_code == 0, uninterrupted.stderr
    kinds = [message["type"] for message in uninterrupted.messages]
    twice = ["rollouts", "step"] * 2
    assert kinds == ["ready", *twice, "checkpoint", *twice, "checkpoint", *twice[:2], "checkpoint", "done"]
    assert uninterrupted.messages[0] == {"type": "ready", "step": 0}
    assert uninterrupted.messages[-1] == {"type": "done", "step": STEPS}
    request = uninterrupted.of_type("rollouts")[0]
    assert request.keys() == {"type", "id", "step", "tasks", "group_size", "policy"}
    metrics = uninterrupted.of_type("step")[0]["metrics"]
    assert metrics["logprob_gap"] < 1e-5
    assert metrics["informative_groups"] == 2
    assert metrics["grad_norm"] > 0
    assert metrics["learning_rate"] == 0.01
    for message in uninterrupted.of_type("checkpoint"):
        folder = Path(message["policy"]["adapter"])
        assert is_whole(folder)
        assert {"adapter_config.json", "adapter_model.safetensors", "optimizer.pt", "scheduler.pt"} <= {
            file.name for file in folder.iterdir()
        }
    assert not (uninterrupted.folder / "out" / ".partial" / f"checkpoint-{STEPS}").exists()


def test_weights_move_away_from_a_zero_lora(uninterrupted: Worker) -> None:
    weights = load_file(uninterrupted.folder / "out" / f"checkpoint-{STEPS}" / "adapter_model.safetensors")
    assert all(tensor.abs().max() > 0 for name, tensor in weights.items() if "lora_B" in name)


def test_kill_9_while_a_checkpoint_is_written(tiny_model_dir: Path, tmp_path: Path, uninterrupted: Worker) -> None:
    """A step takes one fsync, a checkpoint nine; the process kills itself at the fourth of the second checkpoint."""
    killer = """
import os, signal
real, calls = os.fsync, []
def fsync(handle):
    calls.append(handle)
    if len(calls) == 17: os.kill(os.getpid(), signal.SIGKILL)
    real(handle)
os.fsync = fsync
"""
    run = worker(tiny_model_dir, tmp_path).run(before=killer)
    assert run.exit_code == -9
    assert (tmp_path / "out" / ".partial" / "checkpoint-4").exists()
    assert not (tmp_path / "out" / "checkpoint-4").exists()
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=2)


def test_kill_9_while_rollouts_are_made(tiny_model_dir: Path, tmp_path: Path, uninterrupted: Worker) -> None:
    def kill(message: Message, process: subprocess.Popen) -> None:
        if message["type"] == "rollouts" and message["step"] == 3:
            process.kill()
            process.wait()
            process.stdin.close()

    run = worker(tiny_model_dir, tmp_path).run(on_message=kill)
    assert run.exit_code == -9
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=2)


def test_sigterm_while_rollouts_are_made(tiny_model_dir: Path, tmp_path: Path, uninterrupted: Worker) -> None:
    def stop(message: Message, process: subprocess.Popen) -> bool | None:
        if message["type"] == "rollouts" and message["step"] == 3:
            terminate(process)
            return False
        return None

    run = worker(tiny_model_dir, tmp_path).run(on_message=stop)
    assert run.exit_code == 0, run.stderr
    assert run.messages[-2]["type"] == "checkpoint"
    assert run.messages[-1] == {"type": "interrupted", "step": 3}
    assert is_whole(tmp_path / "out" / "checkpoint-3")
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=3)


def test_sigterm_before_the_first_step(tiny_model_dir: Path, tmp_path: Path, uninterrupted: Worker) -> None:
    def stop(message: Message, process: subprocess.Popen) -> bool:
        if message["type"] == "ready":
            terminate(process)
        return False

    run = worker(tiny_model_dir, tmp_path).run(on_message=stop)
    assert run.exit_code == 0, run.stderr
    assert run.messages[-1]["type"] == "interrupted"
    stopped = run.messages[-1]["step"]
    assert stopped == 0
    assert is_whole(tmp_path / "out" / "checkpoint-0")
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=0)


def test_end_of_file_on_stdin(tiny_model_dir: Path, tmp_path: Path) -> None:
    def leave(message: Message, process: subprocess.Popen) -> None:
        if message["type"] == "rollouts" and message["step"] == 1:
            process.stdin.close()

    run = worker(tiny_model_dir, tmp_path).run(on_message=leave)
    assert run.exit_code == 0, run.stderr
    assert run.messages[-1] == {"type": "interrupted", "step": 1}
    assert last_whole(tmp_path / "out") == (1, tmp_path / "out" / "checkpoint-1")


def test_a_job_that_is_done_is_done(uninterrupted: Worker) -> None:
    again = Worker(uninterrupted.folder, uninterrupted.job).run()
    last = str((again.folder / "out" / f"checkpoint-{STEPS}").resolve())
    assert again.messages == [
        {"type": "ready", "step": STEPS},
        {"type": "checkpoint", "step": STEPS, "policy": {"adapter": last}},
        {"type": "done", "step": STEPS},
    ]


def test_another_job_does_not_continue_a_checkpoint(uninterrupted: Worker) -> None:
    other = Worker(uninterrupted.folder, {**uninterrupted.job, "learning_rate": 0.5}).run()
    assert other.exit_code == 1
    error = other.messages[-1]["error"]
    assert error["type"] == "BadJob"
    assert "output_dir" in error["message"]


def test_rollouts_that_fail_end_the_training_with_its_state_saved(tiny_model_dir: Path, tmp_path: Path) -> None:
    def fail(message: Message, process: subprocess.Popen) -> str | None:
        if message["type"] == "rollouts" and message["step"] == 1:
            return json.dumps({"type": "error", "id": message["id"], "message": "policy server\nis down"})
        return None

    run = worker(tiny_model_dir, tmp_path).run(on_message=fail)
    assert run.exit_code == 1
    assert run.messages[-1]["error"] == {
        "type": "RolloutsFailed",
        "message": "rollouts of step 1: policy server is down",
    }
    assert is_whole(tmp_path / "out" / "checkpoint-1")


def test_a_bad_batch_ends_the_training_with_its_state_saved(tiny_model_dir: Path, tmp_path: Path) -> None:
    run = worker(tiny_model_dir, tmp_path)

    def spoil(message: Message, process: subprocess.Popen) -> str | None:
        if message["type"] == "rollouts" and message["step"] == 1:
            return run.write_batch(message, {"groups": []})
        return None

    run.run(on_message=spoil)
    assert run.exit_code == 1
    assert run.messages[-1]["error"]["type"] == "BadJob"
    assert "0 groups, asked for 2" in run.messages[-1]["error"]["message"]
    assert is_whole(tmp_path / "out" / "checkpoint-1")


def test_a_batch_file_that_was_damaged_is_asked_for_again(
    tiny_model_dir: Path, tmp_path: Path, uninterrupted: Worker
) -> None:
    """It is no fault of the job: the next attempt goes on."""
    run = worker(tiny_model_dir, tmp_path)

    def tear(message: Message, process: subprocess.Popen) -> str | None:
        if message["type"] != "rollouts" or message["step"] != 1:
            return None
        answer = run.answer(message)
        file = Path(json.loads(answer)["file"])
        file.write_bytes(file.read_bytes()[:-20])
        return answer

    run.run(on_message=tear)
    assert run.exit_code == 1
    assert run.messages[-1]["error"]["type"] == "DamagedBatch"
    assert_goes_on_to_the_same_end(run, uninterrupted, ready=1)


FULL_DISK = """
import errno, os
{}
def full(*arguments, **options): raise {}
"""
NO_ROOM = "OSError(errno.ENOSPC, 'No space left on device')"
# What the two libraries that write a checkpoint raise; the others of it are Python's own.
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
        ("import safetensors.torch", SAFETENSORS_NO_ROOM, "safetensors.torch.save_file = full"),
    ],
    ids=["python", "torch", "safetensors"],
)
def test_a_full_disk_is_said_and_nothing_half_written_stays(
    tiny_model_dir: Path, tmp_path: Path, imports: str, error: str, replaced: str
) -> None:
    run = worker(tiny_model_dir, tmp_path).run(before=FULL_DISK.format(imports, error) + replaced)
    assert run.exit_code == 1
    assert run.messages[-1]["error"]["type"] == "DiskFull", run.stderr
    assert not run.of_type("checkpoint")
    assert not list((tmp_path / "out" / ".partial").glob("checkpoint-*"))
    assert last_whole(tmp_path / "out") == (0, None)


def test_a_log_that_can_not_be_written_ends_no_training(tiny_model_dir: Path, tmp_path: Path) -> None:
    """Stderr is a full disk, and somebody says something."""
    chatty = """
import os, sys, trainer.train.run as run
os.dup2(os.open('/dev/full', os.O_WRONLY), 2)
def talking(*given):
    print('x' * 99999, flush=True)
    print('y', file=sys.stderr)
    return real(*given)
real, run.training_batch = run.training_batch, talking
"""
    run = Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=2)).run(before=chatty)
    assert run.exit_code == 0
    assert run.messages[-1] == {"type": "done", "step": 2}


def test_metrics_are_cut_back_to_whole_lines_of_finished_steps(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "metrics.jsonl"

    def line(step: int) -> bytes:
        return json.dumps({"step": step, "reward": 0.5}).encode() + b"\n"

    file.write_bytes(line(1) + line(2) + b"\x00\xff\x00\n" + line(4) + b'["no object"]\n' + line(5) + line(6)[:9])
    cut_metrics(file, 4)
    assert file.read_bytes() == line(1) + line(2) + line(4)
    assert "holds no whole line of steps 3;" in capfd.readouterr().err
    cut_metrics(file, 4)
    assert file.read_bytes() == line(1) + line(2) + line(4)
    file.unlink()
    cut_metrics(file, 1)
    assert file.read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_damaged_metrics_stop_no_training(tiny_model_dir: Path, tmp_path: Path) -> None:
    def stop(message: Message, process: subprocess.Popen) -> bool | None:
        if message["type"] == "rollouts" and message["step"] == 3:
            terminate(process)
            return False
        return None

    run = worker(tiny_model_dir, tmp_path).run(on_message=stop)
    file = tmp_path / "out" / "metrics.jsonl"
    file.write_bytes(b"garbage\n" + b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    again = Worker(run.folder, run.job).run()
    assert again.exit_code == 0, again.stderr
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [2, 3, 4, 5]
    assert "holds no whole line of steps 1;" in again.stderr


def test_steps_without_contrast_count_and_change_nothing(tiny_model_dir: Path, tmp_path: Path) -> None:
    run = Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=4, checkpoint_every=1))
    usual = run.answer

    def flat(message: Message, process: subprocess.Popen) -> str | None:
        """The first and the third batch have one reward a group, the others two."""
        if message["type"] != "rollouts":
            return None
        answer = usual(message)
        file = Path(json.loads(answer)["file"])
        batch = json.loads(file.read_text())
        for group in batch["groups"]:
            for number, rollout in enumerate(group["rollouts"]):
                rollout["reward"] = number % 2 if message["step"] % 2 else 0.5
        return run.write_batch(message, batch)

    run.run(on_message=flat)
    assert run.exit_code == 0, run.stderr
    metrics = [message["metrics"] for message in run.of_type("step")]
    assert [m["informative_groups"] for m in metrics] == [0, 2, 0, 2]
    assert [m["grad_norm"] > 0 for m in metrics] == [False, True, False, True]
    assert adapter_bytes(run, 2) == adapter_bytes(run, 3) != adapter_bytes(run, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"kl": 0.1, "advantage": "batch", "gradient_checkpointing": True},
        {"dtype": "bfloat16", "tokens_per_forward": 50},
    ],
)
def test_other_settings_train(tiny_model_dir: Path, tmp_path: Path, changes: Message) -> None:
    run = Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=2, **changes)).run()
    assert run.exit_code == 0, run.stderr
    assert all(message["metrics"]["grad_norm"] > 0 for message in run.of_type("step"))


def test_learning_rate_0_changes_nothing(tiny_model_dir: Path, tmp_path: Path) -> None:
    run = Worker(tmp_path, make_job(tiny_model_dir, tmp_path / "out", steps=2, learning_rate=0)).run()
    assert run.exit_code == 0, run.stderr
    weights = load_file(tmp_path / "out" / "checkpoint-2" / "adapter_model.safetensors")
    assert all(tensor.abs().max() == 0 for name, tensor in weights.items() if "lora_B" in name)


def test_a_torn_checkpoint_is_passed_over(uninterrupted: Worker, tmp_path: Path) -> None:
    """As after a power loss: the newest checkpoint has a file that is too short, or no manifest."""
    output = tmp_path / "out"
    shutil.copytree(uninterrupted.folder / "out", output)
    optimizer = output / f"checkpoint-{STEPS}" / "optimizer.pt"
    optimizer.write_bytes(optimizer.read_bytes()[:-1])
    assert last_whole(output) == (4, output / "checkpoint-4")
    (output / "checkpoint-4" / "manifest.json").unlink()
    assert last_whole(output) == (2, output / "checkpoint-2")


def test_a_folder_is_locked_while_a_trainer_works_in_it(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as other:
        with only_trainer(tmp_path), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_waiting_for_another_trainer_is_over_before_it_looks_like_a_hang() -> None:
    # The shortest workers.heartbeatSeconds, and PATIENCE of src/training/learner-process.ts.
    shortest_heartbeat, patience = 20, 0.8
    assert shortest_heartbeat * patience > LEAVE_SECONDS + 2


def test_a_folder_that_another_trainer_does_not_leave_is_said(tmp_path: Path) -> None:
    said = pytest.raises(FolderBusy, match=f"the trainer with pid {os.getpid()} works there")
    with only_trainer(tmp_path), said, only_trainer(tmp_path, wait=0.3):
        raise AssertionError("two trainers in one folder")
