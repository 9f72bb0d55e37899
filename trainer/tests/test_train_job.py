"""Bad jobs and batches: one line that names the field, the value and the fix."""

import json
import subprocess
import sys
from typing import Any

import pytest

from trainer.command import BadInput
from trainer.tests.train_harness import (
    ROOT,
    Message,
    as_lines,
    make_job,
    parse_job,
)
from trainer.train.groups import tasks_of_all_steps
from trainer.train.job import DamagedBatch, read_groups


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_model": "/nowhere"}, r'base_model "/nowhere": .*no model there.*make base-model'),
        ({"groups_per_step": 4}, r"groups_per_step 4: .*there are 3 tasks: lower it to that"),
        ({"learning_rate": float("nan")}, r"learning_rate NaN: must be a finite number"),
        ({"learning_rat": 1}, r"learning_rat 1: no such field; correct its name"),
    ],
)
def test_bad_jobs(tiny_model_dir, tmp_path, changes, said):
    with pytest.raises(BadInput, match=said) as caught:
        parse_job(make_job(tiny_model_dir, tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_a_bad_job_is_one_error_line_and_exit_code_1(tmp_path):
    job = tmp_path / "job.json"
    job.write_text('{"tasks": []}')
    command = [sys.executable, "-m", "trainer", "train", "--job", str(job)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    [line] = done.stdout.splitlines()
    message = json.loads(line)
    assert (message["type"], message["error"]["type"]) == ("error", "BadJob")
    assert "base_model" in message["error"]["message"]


def test_tasks_come_as_given_then_shuffled_by_the_seed_and_never_twice_in_a_step(tiny_model_dir, tmp_path):
    def drawn(**changes: Any) -> list[str]:
        return tasks_of_all_steps(parse_job(make_job(tiny_model_dir, tmp_path, **changes)))

    few = drawn(steps=6, groups_per_step=2)
    assert len(few) == 12
    assert few[:2] == ["s1", "s2"]
    assert set(few) == {"s1", "s2", "s3"}
    assert all(few[i] != few[i + 1] for i in range(0, 12, 2))
    assert drawn(steps=9, groups_per_step=2)[:12] == few != drawn(steps=6, seed=4)
    many = [f"s{n}" for n in range(8)]
    pairs = drawn(tasks=many, steps=8)
    assert pairs[:8] == many == sorted(pairs[8:]) != pairs[8:]


def good_batch() -> list[Message]:
    def rollout(reward: float) -> Message:
        row = {"prompt_ids": [1, 2], "completion_ids": [3, 4], "logprobs": [-1.0, 0], "mask": [1, 0]}
        return {"task": "s1", "rows": [row], "reward": reward}

    return [rollout(0), rollout(1)]


def row_of(batch: list[Message]) -> Message:
    return batch[0]["rows"][0]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: b[1].update(task="s2"), r"line 2 of .*: task 's2', asked for 's1'"),
        (lambda b: b[1].update(reward=float("nan")), r"line 2 of .*: reward NaN: .*finite"),
        (lambda b: row_of(b).update(mask=[1]), r"rows.0 .*: 2 completion_ids, 2 logprobs, 1 mask; give one each"),
        (lambda b: row_of(b).update(mask=[2, 0]), r"rows.0 .*: mask holds \[0, 2\]; give 1 on tokens that carry loss"),
        (lambda b: row_of(b).update(completion_ids=[3, 50]), r"line 1 of .*: ids from 1 to 50; .*vocabulary has 50"),
        (lambda b: row_of(b).update(logprobs=[float("-inf"), 0]), r"logprobs.0 -Infinity: must be a finite number"),
    ],
)
def test_bad_batches(tmp_path, spoil, said):
    batch = good_batch()
    spoil(batch)
    file = tmp_path / "batch.jsonl"
    file.write_text(as_lines(batch))
    with pytest.raises(BadInput, match=said) as caught:
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_whole_is_damaged(tmp_path):
    batch = good_batch()
    file = tmp_path / "batch.jsonl"

    def read() -> Any:
        return read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)

    with pytest.raises(DamagedBatch, match=r"batch file .*batch.jsonl: No such file.*name a readable"):
        read()
    file.write_text(as_lines(batch))
    assert [[rollout.rows[0].logprobs for rollout in group] for group in read()] == [[[-1.0, 0]] * 2]
    file.write_text(as_lines(batch)[:-5])
    with pytest.raises(DamagedBatch, match=r"line 2 of .*batch.jsonl: Invalid JSON.*whole JSON object"):
        read()
    file.write_text(as_lines(batch[:1]))
    with pytest.raises(DamagedBatch, match=r"batch.jsonl: holds 1 rollouts of 2"):
        read()
    file.write_text(as_lines([*batch, *batch]))
    with pytest.raises(DamagedBatch, match=r"batch.jsonl: holds 4 rollouts of 2"):
        read()
