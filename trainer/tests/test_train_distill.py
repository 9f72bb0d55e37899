"""Distillation: the divergence against one written by hand, the student comes nearer, and goes on where it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from trainer.tests.conftest import save_adapter
from trainer.tests.train_harness import LORA, TARGETS, Message, Worker, make_job, terminate
from trainer.train.channel import Channel
from trainer.train.distill import DistillingTrainer, taught_batch
from trainer.train.job import BadJob, parse_job
from trainer.train.rollouts import Rollout
from trainer.train.run import make_trainer

STEPS = 5
DROPPING = {**LORA, "dropout": 0.25}
"""With dropout the weights depend on every random number that is drawn."""


@pytest.fixture(scope="module")
def teachers(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("teachers")
    return [str(save_adapter(folder / f"{n}", tiny_model_dir, n, TARGETS, rank=2 * n, spread=0.05)) for n in (1, 2)]


class Taught(Worker):
    """Every rollout has a teacher: each of its tasks another one."""

    def __init__(self, base: Path, folder: Path, teachers: list[str], **changes: Any) -> None:
        changes = {"loss": "distill", "steps": STEPS, **changes}
        super().__init__(folder, make_job(base, folder / "out", **changes))
        of = [[{"adapter": teachers[0], "weight": 1.0}], [{"adapter": one, "weight": 0.5} for one in teachers], []]
        self.teacher_of = dict(zip(("s1", "s2", "s3"), of, strict=True))

    def write_batch(self, request: Message, batch: Message) -> str:
        for group in batch["groups"]:
            for rollout in group["rollouts"]:
                rollout["teacher"] = self.teacher_of[group["task"]]
        return super().write_batch(request, batch)


@pytest.fixture(scope="module")
def uninterrupted(tiny_model_dir: Path, teachers: list[str], tmp_path_factory: pytest.TempPathFactory) -> Worker:
    return Taught(tiny_model_dir, tmp_path_factory.mktemp("distill"), teachers, lora=DROPPING).run()


def adapter_bytes(run: Worker) -> bytes:
    return (run.folder / "out" / f"checkpoint-{STEPS}" / "adapter_model.safetensors").read_bytes()


def rollout(row: Message, **more: Any) -> Rollout:
    return Rollout.model_validate({"rows": [row], "reward": 0.0, **more})


ROWS = [
    {"prompt_ids": [9, 10, 11], "completion_ids": [20, 21, 22, 23], "logprobs": None, "mask": [1, 0, 1, 1]},
    {"prompt_ids": [9], "completion_ids": [30, 31], "logprobs": [-1.0, -2.0], "mask": [0, 1]},
]


def test_the_loss_is_the_mean_reverse_divergence_from_each_rows_teacher(
    tiny_model_dir: Path, tmp_path: Path, teachers: list[str]
) -> None:
    job = parse_job(make_job(tiny_model_dir, tmp_path, loss="distill", steps=1))
    student = make_trainer(job, tmp_path, Channel(None, None))
    assert isinstance(student, DistillingTrainer)
    parts = [[{"adapter": teachers[0], "weight": 0.5}, {"adapter": teachers[1], "weight": 1.0}], []]
    batch = taught_batch([[rollout(row, teacher=teacher) for row, teacher in zip(ROWS, parts, strict=True)]])
    assert batch.tokens == 4
    losses = [student.compute_loss(student.model, micro).item() for micro in student.micro_batches(batch)]

    base = AutoModelForCausalLM.from_pretrained(tiny_model_dir)
    with torch.no_grad():
        own = [base(torch.tensor([row["prompt_ids"] + row["completion_ids"]])).logits.log_softmax(-1) for row in ROWS]
        # The fresh student is the base model, and so is the second row's teacher.
        summed = PeftModel.from_pretrained(base, teachers[0], adapter_name="a")
        summed.load_adapter(teachers[1], "b")
        summed.base_model.add_weighted_adapter(["a", "b"], [0.5, 1.0], "sum", combination_type="cat")
        summed.set_adapter("sum")
        taught = summed(torch.tensor([ROWS[0]["prompt_ids"] + ROWS[0]["completion_ids"]])).logits.log_softmax(-1)
    at = [2, 4, 5]  # where the tokens that carry loss were sampled
    divergence = (own[0].exp() * (own[0] - taught))[0, at].sum() / 4
    assert losses == pytest.approx([divergence.item(), 0.0], abs=1e-5)
    assert divergence > 1e-3
    # What is trained, and what is saved, is the student.
    trained = {name for name, weights in student.model.named_parameters() if weights.requires_grad}
    assert trained and all(".default." in name for name in trained)


def test_a_rollout_without_a_teacher_is_refused() -> None:
    with pytest.raises(
        BadJob, match=r"^groups.0.rollouts.1.teacher: required where loss is distill; name the adapters"
    ):
        taught_batch([[rollout(ROWS[0], teacher=[]), rollout(ROWS[1])]])


def test_the_student_comes_nearer_to_its_teachers(tiny_model_dir: Path, tmp_path: Path, teachers: list[str]) -> None:
    run = Taught(tiny_model_dir, tmp_path, teachers[:1] * 2, steps=12, tasks=["s1", "s2"]).run()
    assert run.exit_code == 0, run.stderr
    losses = [message["metrics"]["loss"] for message in run.of_type("step")]
    assert losses[-1] < losses[0] / 2
    assert run.of_type("step")[0]["metrics"]["teachers"] == 2


@pytest.mark.parametrize("step", [0, 3])
def test_stopped_it_goes_on_to_the_same_bytes(
    tiny_model_dir: Path, tmp_path: Path, teachers: list[str], uninterrupted: Worker, step: int
) -> None:
    def stop(message: Message, process: subprocess.Popen) -> bool | None:
        if message["type"] == "rollouts" and message["step"] == step:
            terminate(process)
            return False
        return None

    run = Taught(tiny_model_dir, tmp_path, teachers, lora=DROPPING).run(on_message=stop)
    assert run.messages[-1] == {"type": "interrupted", "step": step}, run.stderr
    again = Taught(tiny_model_dir, tmp_path, teachers, lora=DROPPING).run()
    assert again.messages[0] == {"type": "ready", "step": step}
    assert adapter_bytes(again) == adapter_bytes(uninterrupted)
    saved = json.loads((tmp_path / "out" / f"checkpoint-{STEPS}" / "manifest.json").read_text())["files"]
    assert not [name for name in saved if "teacher" in name]
