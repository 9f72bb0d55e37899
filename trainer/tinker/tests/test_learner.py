"""The learner against a Tinker server that computes little: whatever it reduces a loss by, and whatever it loses."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainer.command import BadInput
from trainer.tinker.archive import read_export
from trainer.tinker.job import TinkerJob
from trainer.tinker.learner import run
from trainer.tinker.probe import REDUCTIONS, Question, check
from trainer.tinker.tests.fake_server import MODULE, VOCABULARY, Fake, serving
from trainer.train.channel import Channel, SamplerDiffers

LORA = {"r": 2, "alpha": 32.0, "dropout": 0.0, "target_modules": ["q_proj"]}
KEY = "tml-nobody-sees-this"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("TINKER_API_KEY", KEY)


@pytest.fixture
def base(tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"vocab_size": VOCABULARY}))
    return folder


class Gone(Exception):
    """The worker has gone, and the learner with it."""


class Worker:
    """Both ends of a learner's pipes. `until`: the type and step of the message at which it goes."""

    def __init__(self, folder: Path, until: tuple[str, int] | None, constant: bool) -> None:
        self.folder, self.until, self.constant = folder, until, constant
        self.messages: list[dict[str, Any]] = []

    def write(self, line: str) -> None:
        self.messages.append(json.loads(line))
        if (self.messages[-1]["type"], self.messages[-1].get("step")) == self.until:
            raise Gone

    def flush(self) -> None:
        pass

    def readline(self) -> str:
        request = self.messages[-1]
        file = self.folder / "batch.jsonl"
        rollouts = [rollout for task in request["tasks"] for rollout in self.group(request, task)]
        file.write_text("".join(f"{json.dumps(rollout)}\n" for rollout in rollouts))
        return json.dumps({"type": "rollouts", "id": request["id"], "file": str(file)}) + "\n"

    def group(self, request: dict[str, Any], task: str) -> list[dict[str, Any]]:
        draw = random.Random(f"{request['step']} {task}")

        def ids(count: int) -> list[int]:
            return [draw.randrange(VOCABULARY) for _ in range(count)]

        rollouts = []
        for _ in range(request["group_size"]):
            count = draw.randint(2, 9)
            logprobs = [draw.uniform(-4, -2) for _ in range(count)]
            row = {"prompt_ids": ids(draw.randint(1, 5)), "completion_ids": ids(count), "logprobs": logprobs}
            mask = [1, *(draw.randint(0, 1) for _ in range(count - 1))]
            reward = 0.5 if self.constant else draw.random()
            rollouts.append({"task": task, "rows": [row | {"mask": mask}], "reward": reward})
        return rollouts


def learn(
    fake: Fake,
    base: Path,
    folder: Path,
    *,
    until: tuple[str, int] | None = None,
    constant: bool = False,
    **changes: Any,
) -> list[dict[str, Any]]:
    """Trains two steps; returns the messages to the worker."""
    folder.mkdir(exist_ok=True)
    fields = {
        **{"base_model": str(base), "output_dir": str(folder / "out"), "seed": 3, "lora": LORA},
        **{"learning_rate": 0.05, "max_grad_norm": 0.0, "checkpoint_every": 1, "threads": 1, "dtype": "float32"},
        **{"tokens_per_forward": 4096, "gradient_checkpointing": False, "report_to": "none"},
        **{"tasks": ["s1", "s2", "s3"], "steps": 2},
        **{"groups_per_step": 2, "group_size": 4, "processes": 1, "clip": 0.2, "delta": 4.0, "kl": 0.0},
        **{"importance_sampling_clip_max": None, "off_policy_mask_threshold": 0.5, "max_logprob_gap": 9.0},
        **{"temperature": 1.0, "advantage": "group"},
        **{"url": fake.url, "server_model": None},
    }
    worker = Worker(folder, until, constant)
    try:
        run(TinkerJob(**fields | changes), Channel(worker, worker))
    except Gone:
        assert until
    return worker.messages


def weights(folder: Path, step: int) -> np.ndarray:
    tensors = read_export(folder / f"out/checkpoint-{step}").tensors
    return np.concatenate([tensors[key].ravel() for key in sorted(tensors)])


def state(folder: Path, step: int) -> str:
    return json.loads((folder / f"out/checkpoint-{step}/tinker.json").read_text())["state"]


@pytest.fixture
def fake():
    with serving(Fake()) as one:
        yield one


def test_however_a_server_reduces_a_loss_the_adapter_is_the_same(base, tmp_path):
    came_to = []
    for number, reduction in enumerate(REDUCTIONS):
        with serving(Fake(reduction=reduction)) as fake:
            messages = learn(fake, base, tmp_path / str(number))
            assert messages[-1] == {"type": "done", "step": 2}
            assert all(model is None for model in fake.models.values())
        came_to.append(weights(tmp_path / str(number), 2))
        assert json.loads((tmp_path / str(number) / "out/checkpoint-2/tinker.json").read_text())["reduction"] == (
            reduction
        )
    assert np.abs(came_to[0] - weights(tmp_path / "0", 0)).max() > 0.05
    for other in came_to[1:]:
        assert np.abs(other - came_to[0]).max() < 1e-5


def test_a_reduction_that_is_not_known_is_refused(base, tmp_path):
    with (
        serving(Fake(reduction="unheard of")) as fake,
        pytest.raises(BadInput, match=r"multiplies a gradient with 3\.3"),
    ):
        learn(fake, base, tmp_path / "job")


def test_clipping_is_tried_and_done_by_the_server(base, tmp_path):
    with serving(Fake(reduction="mean of rows' means", clips=True)) as fake:
        learn(fake, base, tmp_path / "free")
        learn(fake, base, tmp_path / "clipped", max_grad_norm=1e-9, learning_rate=1e-3)
    # For such small gradients, Adam's epsilon limits the step.
    assert np.abs(weights(tmp_path / "clipped", 2) - weights(tmp_path / "clipped", 0)).max() < 5e-4
    with serving(Fake()) as fake, pytest.raises(BadInput, match="clips no gradients; set it to 0"):
        learn(fake, base, tmp_path / "refused", max_grad_norm=1.0)


def test_a_checkpoint_is_a_peft_folder_and_holds_no_key(fake, base, tmp_path):
    messages = learn(fake, base, tmp_path / "job")
    folder = tmp_path / "job/out/checkpoint-2"
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["target_modules"], config["r"], config["lora_alpha"]) == ([MODULE], 2, 32.0)
    assert config["base_model_name_or_path"] == str(base)
    assert [one["step"] for one in messages if one["type"] == "checkpoint"] == [0, 1, 2]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


@pytest.mark.parametrize("until", [("rollouts", 1), ("step", 2), ("checkpoint", 1)])
def test_gone_on_with_as_if_nothing_had_been(fake, base, tmp_path, until):
    learn(fake, base, tmp_path / "whole")
    learn(fake, base, tmp_path / "job", until=until)
    learn(fake, base, tmp_path / "job")
    assert [weights(tmp_path / "job", n).tolist() for n in (1, 2)] == [
        weights(tmp_path / "whole", n).tolist() for n in (1, 2)
    ]


def test_a_lost_state_costs_an_update_and_two_the_training(fake, base, tmp_path):
    learn(fake, base, tmp_path / "whole", steps=3)
    learn(fake, base, tmp_path / "job", steps=3, until=("rollouts", 2))
    del fake.saved[state(tmp_path / "job", 2)]
    messages = learn(fake, base, tmp_path / "job", steps=3)
    assert [one["step"] for one in messages if one["type"] == "rollouts"] == [1, 2]
    assert weights(tmp_path / "job", 3).tolist() == weights(tmp_path / "whole", 3).tolist()
    fake.loads_nothing = True
    for _ in range(2):
        with pytest.raises(BadInput, match=r"other weights .* remove the folder to start again"):
            learn(fake, base, tmp_path / "job", steps=4)


def test_a_step_whose_groups_are_constant_is_one_of_the_momentum_alone(fake, base, tmp_path):
    messages = learn(fake, base, tmp_path / "job", constant=True)
    step = next(one for one in messages if one["type"] == "step")
    assert (step["metrics"]["loss"], step["metrics"]["grad_norm"], step["metrics"]["rows"]) == (0, 0, 0)


def test_a_sampler_that_differs_ends_it_before_the_update(fake, base, tmp_path):
    with pytest.raises(SamplerDiffers, match=r"in step 1, more than training\.maxLogprobGap 0\.1"):
        learn(fake, base, tmp_path / "job", max_logprob_gap=0.1)
    assert [path.name for path in (tmp_path / "job/out").glob("checkpoint-*")] == ["checkpoint-0"]


@pytest.mark.parametrize(
    ("of", "asked", "said"),
    [
        ({"alpha": 16.0}, {}, r"training\.lora\.alpha 32: the Tinker server's is 16"),
        ({"module": "model.layers.0.mlp.up_proj"}, {}, r"targetModules q_proj: the Tinker server trains up_proj"),
        ({}, {"server_model": "other"}, r"trainer\.model 'other': http\S+ has base; name one of them"),
        ({"loads_nothing": True}, {}, "what it saves is not what it loads"),
    ],
)
def test_a_server_is_checked_before_anything_is_spent(base, of, asked, said):
    question = {"server_model": None, "base_model": str(base), "lora": LORA, "max_grad_norm": 0.0, "tries": True}
    with serving(Fake(**of)) as fake, pytest.raises(BadInput, match=said):
        check(Question(**{"url": fake.url, **question, **asked}))


def test_without_a_key_nothing_is_asked(monkeypatch, fake, base, tmp_path):
    monkeypatch.delenv("TINKER_API_KEY")
    with pytest.raises(BadInput, match="TINKER_API_KEY: it is not set"):
        learn(fake, base, tmp_path / "job")
