"""Bad jobs and bad batches: one line that names the field, the value and the fix."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.tests.train_harness import ROOT, Message, make_job
from trainer.train.job import BadJob, parse_job
from trainer.train.rollouts import read_groups
from trainer.train.run import build_model, tasks_of_all_steps


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_model": "/nowhere"}, r"base_model /nowhere: no model folder.*build"),
        ({"tasks": []}, r"tasks \[\]: must be a list of at least one.*give"),
        ({"tasks": ["s1", 2]}, r"tasks .*give"),
        ({"group_size": 1}, r"group_size 1: .*at least 2"),
        ({"group_size": True}, r"group_size true"),
        ({"steps": 0}, r"steps 0: must be an integer of at least 1"),
        ({"steps": 2.5}, r"steps 2.5"),
        ({"learning_rate": -1}, r"learning_rate -1: must be a finite number of at least 0"),
        ({"learning_rate": float("nan")}, r"learning_rate NaN"),
        ({"clip": 0}, r"clip 0: must be a finite number above 0"),
        ({"temperature": 0.7}, r"temperature 0.7: .*use 1"),
        ({"advantage": "grouped"}, r'advantage "grouped": must be one of "group", "batch"'),
        ({"learning_rat": 1}, r"learning_rat 1: no such field; known are .*learning_rate"),
        ({"lora": {"r": 4, "alpha": 4}}, r"lora.target_modules: missing"),
        ({"lora": {"r": 0, "alpha": 4, "target_modules": ["w1"]}}, r"lora.r 0"),
        ({"lora": 4}, r"lora 4: must be a JSON object"),
    ],
)
def test_bad_jobs(tiny_model_dir: Path, tmp_path: Path, changes: Message, said: str) -> None:
    with pytest.raises(BadJob, match=said) as caught:
        parse_job(make_job(tiny_model_dir, tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_a_missing_field(tiny_model_dir: Path, tmp_path: Path) -> None:
    job = make_job(tiny_model_dir, tmp_path)
    del job["steps"]
    with pytest.raises(BadJob, match="steps: missing; add it"):
        parse_job(job)


def test_a_module_that_the_model_does_not_have(tiny_model_dir: Path, tmp_path: Path) -> None:
    job = make_job(tiny_model_dir, tmp_path, lora={"r": 4, "alpha": 4, "target_modules": ["q_proj", "up_proj"]})
    with pytest.raises(BadJob, match=r"lora.target_modules 'up_proj': no such module.*choose from.*q_proj"):
        build_model(parse_job(job))


@pytest.mark.parametrize("text", [None, "{not json", json.dumps({"tasks": []})])
def test_a_bad_job_is_one_error_line_and_exit_code_1(tmp_path: Path, text: str | None) -> None:
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
    assert done.stderr == ""


def test_tasks_are_drawn_from_the_seed_and_never_twice_in_a_step(tiny_model_dir: Path, tmp_path: Path) -> None:
    job = parse_job(make_job(tiny_model_dir, tmp_path, steps=6, groups_per_step=2))
    drawn = tasks_of_all_steps(job)
    assert len(drawn) == 12
    assert set(drawn) == {"s1", "s2", "s3"}
    assert all(drawn[i] != drawn[i + 1] for i in range(0, 12, 2))
    few = tasks_of_all_steps(parse_job(make_job(tiny_model_dir, tmp_path, steps=2, groups_per_step=4)))
    assert len(few) == 8
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
        (lambda b: b.pop("groups"), r"no groups, asked for 1"),
        (lambda b: b["groups"][0].update(task="s2"), r"groups\[0\].task 's2': asked for 's1'"),
        (lambda b: b["groups"][0]["rollouts"].pop(), r"groups\[0\].rollouts: 1 rollouts; send exactly group_size = 2"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=float("nan")), r"rollouts\[1\].reward nan: .*finite"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=float("inf")), r"rollouts\[1\].reward inf"),
        (lambda b: b["groups"][0]["rollouts"][1].update(reward=None), r"rollouts\[1\].reward None"),
        (lambda b: row_of(b).pop("mask"), r"rows\[0\].mask: missing"),
        (lambda b: row_of(b).update(mask=[1]), r"2 completion_ids, 2 logprobs, 1 mask"),
        (lambda b: row_of(b).update(mask=[2, 0]), r"mask \[0, 2\]: must be 0 or 1"),
        (lambda b: row_of(b).update(completion_ids=[3, 50]), r"completion_ids: ids from 3 to 50; .*vocabulary has 50"),
        (lambda b: row_of(b).update(prompt_ids=[]), r"empty prompt_ids"),
        (lambda b: row_of(b).update(logprobs=[float("-inf"), 0]), r"logprobs: not all finite"),
        (lambda b: row_of(b).update(mask="10"), r"rows\[0\].mask '10': must be a list of numbers"),
        (lambda b: b["groups"][0]["rollouts"].__setitem__(0, 7), r"rollouts\[0\] 7: must be a JSON object"),
    ],
)
def test_bad_batches(tmp_path: Path, spoil: Callable[[Message], Any], said: str) -> None:
    batch = good_batch()
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(batch))
    assert len(read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)) == 1
    spoil(batch)
    file.write_text(json.dumps(batch))
    with pytest.raises(BadJob, match=said):
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)


def test_a_batch_file_that_is_not_there_or_half_written(tmp_path: Path) -> None:
    file = tmp_path / "batch.json"
    with pytest.raises(BadJob, match=r"batch file .*batch.json: No such file.*write it before"):
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
    file.write_text(json.dumps(good_batch())[:-5])
    with pytest.raises(BadJob, match=r"not JSON.*write it whole"):
        read_groups(file, tasks=["s1"], group_size=2, vocabulary=50)
