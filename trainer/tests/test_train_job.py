"""Bad jobs and bad batches: one line that names the field, the value and the fix."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.tests.train_harness import LORA, ROOT, Message, make_job
from trainer.train.job import BadJob, parse_job
from trainer.train.model import build_model
from trainer.train.rollouts import DamagedBatch, read_groups
from trainer.train.run import tasks_of_all_steps


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_model": "/nowhere"}, r'base_model "/nowhere": no model folder.*build'),
        ({"tasks": []}, r"tasks \[\]: .*at least 1 item"),
        ({"tasks": ["s1", 2]}, r"tasks.1 2: must be a valid string"),
        ({"groups_per_step": 4}, r"groups_per_step 4: .*there are 3 tasks: lower it to that"),
        ({"group_size": 1}, r"group_size 1: .*at least 2"),
        ({"group_size": True}, r"group_size true: must be a valid integer"),
        ({"steps": 0}, r"steps 0: must be greater than or equal to 1"),
        ({"steps": 2.5}, r"steps 2.5: must be a valid integer"),
        ({"learning_rate": -1}, r"learning_rate -1: must be greater than or equal to 0"),
        ({"learning_rate": float("nan")}, r"learning_rate NaN: must be a finite number"),
        ({"clip": 0}, r"clip 0: must be greater than 0"),
        ({"temperature": 0}, r"temperature 0: .*above 0"),
        ({"advantage": "grouped"}, r"advantage \"grouped\": must be 'group' or 'batch'"),
        ({"learning_rat": 1}, r"learning_rat 1: no such field; correct its name"),
        ({"lora": {"r": 4, "alpha": 4, "dropout": 0}}, r"lora.target_modules: required; add it"),
        ({"lora": {"r": 0, "alpha": 4, "dropout": 0, "target_modules": ["w1"]}}, r"lora.r 0: must be greater"),
        ({"lora": {"r": 4, "alpha": 4, "dropout": 1, "target_modules": ["w1"]}}, r"lora.dropout 1: must be less"),
        ({"lora": {"r": 4, "alpha": 4, "dropout": 0, "target_modules": ["w1"], "rank": 4}}, r"lora.rank 4: no such"),
        ({"lora": 4}, r"lora 4: must be a valid dictionary"),
    ],
)
def test_bad_jobs(tiny_model_dir: Path, tmp_path: Path, changes: Message, said: str) -> None:
    with pytest.raises(BadJob, match=said) as caught:
        parse_job(make_job(tiny_model_dir, tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_every_field_is_required(tiny_model_dir: Path, tmp_path: Path) -> None:
    job = make_job(tiny_model_dir, tmp_path)
    for name in job:
        with pytest.raises(BadJob, match=f"^{name}: required; add it$"):
            parse_job({field: value for field, value in job.items() if field != name})


def test_a_module_that_the_model_does_not_have(tiny_model_dir: Path, tmp_path: Path) -> None:
    job = make_job(tiny_model_dir, tmp_path, lora={**LORA, "target_modules": ["q_proj", "up_proj"]})
    with pytest.raises(BadJob, match=r"lora.target_modules 'up_proj': no such module.*choose from.*q_proj"):
        build_model(parse_job(job))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "job.json: No such file or directory; name a readable"),
        ("{not json", "job.json: Invalid JSON"),
        ("[]", "job.json: must be an object"),
        ('{"tasks": []}', "base_model: required"),
    ],
)
def test_a_bad_job_is_one_error_line_and_exit_code_1(tmp_path: Path, text: str | None, said: str) -> None:
    job = tmp_path / "job.json"
    if text is not None:
        job.write_text(text)
    command = [sys.executable, "-m", "trainer", "train", "--job", str(job)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    message = json.loads(line)
    assert message["type"] == "error"
    assert message["error"]["type"] == "BadJob"
    assert said in message["error"]["message"]
    assert done.stderr == ""


def test_tasks_come_as_given_then_shuffled_by_the_seed_and_never_twice_in_a_step(
    tiny_model_dir: Path, tmp_path: Path
) -> None:
    job = parse_job(make_job(tiny_model_dir, tmp_path, steps=6, groups_per_step=2))
    drawn = tasks_of_all_steps(job)
    assert len(drawn) == 12
    assert drawn[:2] == ["s1", "s2"]
    assert set(drawn) == {"s1", "s2", "s3"}
    assert all(drawn[i] != drawn[i + 1] for i in range(0, 12, 2))
    many = [f"s{n}" for n in range(8)]
    pairs = tasks_of_all_steps(parse_job(make_job(tiny_model_dir, tmp_path, tasks=many, steps=8)))
    assert pairs[:8] == many
    assert pairs[8:] != many
    assert sorted(pairs[8:]) == many
    longer = tasks_of_all_steps(parse_job(make_job(tiny_model_dir, tmp_path, steps=9, groups_per_step=2)))
    assert longer[:12] == drawn
    assert drawn != tasks_of_all_steps(parse_job(make_job(tiny_model_dir, tmp_path, steps=6, seed=4)))


def good_batch() -> Message:
    def rollout(reward: float) -> Message:
        row = {"prompt_ids": [1, 2], "completion_ids": [3, 4], "logprobs": [-1.0, 0], "mask": [1, 0]}
        return {"rows": [row], "reward": reward}

    return {"groups": [{"task": "s1", "rollouts": [rollout(0), rollout(1)]}]}


def row_of(batch: Message) -> Message:
    return batch["groups"][0]["rollouts"][0]["rows"][0]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: b["groups"].pop(), r"0 groups, asked for 1"),
        (lambda b: b.pop("groups"), r"groups: required"),
        (lambda b: b["groups"][0].update(task="s2"), r"groups.0.task 's2': asked for 's1'"),
        (lambda b: b["groups"][0]["rollouts"].pop(), r"groups.0.rollouts: 1 rollouts; send exactly group_size = 2"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=float("nan")), r"rollouts.1.reward NaN: .*finite"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=float("inf")), r"rollouts.1.reward Infinity: .*finite"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=None), r"rollouts.1.reward null: .*valid number"),
        (lambda b: b["groups"][0]["rollouts"][0].pop("rows"), r"rollouts.0.rows: required"),
        (lambda b: row_of(b).pop("mask"), r"rows.0.mask: required; add it"),
        (lambda b: row_of(b).update(mask=[1]), r"rows.0 .*: 2 completion_ids, 2 logprobs, 1 mask; give one each"),
        (lambda b: row_of(b).update(logprobs=None, mask=[1]), r"2 completion_ids, 2 logprobs, 1 mask; give one each"),
        (lambda b: row_of(b).update(mask=[2, 0]), r"rows.0 .*: mask holds \[0, 2\]; give 1 on tokens that carry loss"),
        (lambda b: row_of(b).update(completion_ids=[3, 50]), r"completion_ids: ids from 3 to 50; .*vocabulary has 50"),
        (lambda b: row_of(b).update(prompt_ids=[-1, 3]), r"prompt_ids: ids from -1 to 3"),
        (lambda b: row_of(b).update(prompt_ids=[]), r"rows.0.prompt_ids \[\]: .*at least 1 item"),
        (lambda b: row_of(b).update(completion_ids=[1.5, 2]), r"completion_ids.0 1.5: must be a valid integer"),
        (lambda b: row_of(b).update(logprobs=[float("-inf"), 0]), r"logprobs.0 -Infinity: must be a finite number"),
        (lambda b: row_of(b).update(mask="10"), r'rows.0.mask "10": must be a valid array'),
        (lambda b: b["groups"][0]["rollouts"].__setitem__(0, 7), r"rollouts.0 7: must be an object"),
    ],
)
def test_bad_batches(tmp_path: Path, spoil: Callable[[Message], Any], said: str) -> None:
    batch = good_batch()
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(batch))
    assert len(read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)) == 1
    spoil(batch)
    file.write_text(json.dumps(batch))
    with pytest.raises(BadJob, match=said) as caught:
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
    assert "\n" not in str(caught.value)


def test_a_row_may_be_without_logprobs(tmp_path: Path) -> None:
    batch = good_batch()
    row_of(batch).update(logprobs=None)
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(batch))
    [[hinted, other]] = read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
    assert (hinted.rows[0].logprobs, other.rows[0].logprobs) == (None, [-1.0, 0])


def test_a_batch_file_that_is_not_there_or_half_written(tmp_path: Path) -> None:
    file = tmp_path / "batch.json"
    with pytest.raises(DamagedBatch, match=r"batch file .*batch.json: No such file.*name a readable"):
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
    file.write_text(json.dumps(good_batch())[:-5])
    with pytest.raises(DamagedBatch, match=r"batch.json: Invalid JSON.*whole JSON object"):
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
