"""The learner against a real Tinker server: SkyRL's, with its JAX backend on CPU (`make test-tinker`).

The worker samples with PEFT from the adapter that the learner names, in float32: so `logprob_gap` is the server's
distance to PEFT."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors.torch import load_file

from trainer.tests.conftest import TARGETS, save_tiny_model
from trainer.tests.train_harness import ROOT, WEIGHTS, Message, Worker, at, make_job

CLIENT, SERVER = ROOT / ".venv-tinker/bin/python", ROOT / ".venv-skyrl/bin/python"
ENV = os.environ | {"TINKER_API_KEY": "tml-any"}
# The cache of JAX, whose compilation takes most of the time of this suite.
KEPT = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache/jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
LORA = {"r": 4, "alpha": 32, "dropout": 0, "target_modules": TARGETS["llama"][0]}


class Learner:
    """A learner's process in the client's environment, as the harness knows one."""

    def __init__(self, argv: list[str], log: Path, before: str) -> None:
        assert not before
        with log.open("w") as file:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": file}
            command = [CLIENT, "-m", "trainer", *argv]
            self._child = subprocess.Popen(command, cwd=ROOT, env=ENV, text=True, bufsize=1, **pipes)
        self.stdin, self.stdout, self.process = self._child.stdin, self._child.stdout, self

    def join(self) -> None:
        self._child.wait()

    @property
    def exitcode(self) -> int:
        return self._child.returncode

    def terminate(self) -> None:
        self._child.terminate()

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self.stdin.close()


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("base"), kind="qwen3", spread=0.1)


@pytest.fixture(scope="session")
def server(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    port = free_port()
    backend = json.dumps({"max_lora_adapters": 4, "max_lora_rank": 8})
    options = ["--base-model", base, "--backend", "jax", "--backend-config", backend]
    options += ["--checkpoints-base", folder / "saved", "--database-url", f"sqlite:///{folder}/server.db"]
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(
            [SERVER, Path(__file__).with_name("skyrl_server.py"), *options, "--port", str(port)],
            env=os.environ | {"JAX_PLATFORMS": "cpu"} | KEPT,
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/api/v1/healthz", child, folder / "log")
        yield SimpleNamespace(url=url, saved=folder / "saved")
    finally:
        child.terminate()
        child.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, child: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + 300
    while True:
        assert child.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(url, timeout=5)
            return
        except OSError:
            time.sleep(1)


def worker(server: SimpleNamespace, base: Path, folder: Path, **changes: Any) -> Worker:
    fields = {"lora": LORA, "max_grad_norm": 0, "steps": 1, "checkpoint_every": 1, "url": server.url}
    job = make_job(base, folder / "out", **{**fields, "server_model": None, **changes})
    return Worker(folder, job, program="tinker", start=Learner)


def local(of: Worker, folder: Path) -> Worker:
    """The trainer on the same job and rollouts."""
    job: Message = {name: value for name, value in of.job.items() if name not in ("url", "server_model")}
    return Worker(folder, {**job, "output_dir": str(folder / "out")})


def starts_as(of: Worker) -> str:
    """Returns Python after which the trainer's LoRA starts with the weights that the server's LoRA started with."""
    weights = str(of.output / "checkpoint-0" / WEIGHTS)
    return f"""
from peft import set_peft_model_state_dict
from safetensors.torch import load_file
from trainer.train import learn

build = learn.build_model


def build_started(job):
    model = build(job)
    set_peft_model_state_dict(model, load_file({weights!r}))
    return model


learn.build_model = build_started
"""


def distance(one: Worker, other: Worker, step: int) -> float:
    a, b = (load_file(w.output / f"checkpoint-{step}" / WEIGHTS) for w in (one, other))
    assert a.keys() == b.keys()
    return max((a[key] - b[key]).abs().max().item() for key in a)


def ended(one: Worker) -> Worker:
    assert one.exit_code == 0, [one.messages[-1:], one.stderr]
    return one


@pytest.fixture(scope="session")
def undisturbed(server, base, tmp_path_factory):
    """Three steps in a row."""
    return ended(worker(server, base, tmp_path_factory.mktemp("undisturbed"), steps=3).run())


class Noisy(Worker):
    """Log-probs that are not the model's, so that clip and delta bound some of them."""

    def write_batch(self, request: Message, rollouts: list[Message]) -> str:
        rows = [row for rollout in rollouts for row in rollout["rows"]]
        for number, row in enumerate(rows):
            shift = [0.5] * 7 if number % 3 == 2 else [-2.0, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7]
            row["logprobs"] = [p + shift[(number + n) % 7] for n, p in enumerate(row["logprobs"])]
        return super().write_batch(request, rollouts)


@pytest.mark.parametrize("truncated", [None, 1.5])
def test_one_step_is_the_trainers(server, base, tmp_path, truncated):
    kept = {"off_policy_mask_threshold": 0.2, "max_logprob_gap": 9, "importance_sampling_clip_max": truncated}
    one = worker(server, base, tmp_path / "tinker", **kept)
    one.__class__ = Noisy
    other = local(one, tmp_path / "local")
    other.__class__ = Noisy
    ended(one.run())
    ended(other.run(before=starts_as(one)))
    assert distance(one, other, 1) < 1e-6
    ours, theirs = one.metrics()[0], other.metrics()[0]
    for name in ("loss", "grad_norm", "reward", "logprob_gap"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-5), name
    for name in ("rows", "loss_tokens", "masked_rows", "informative_groups"):
        assert ours[name] == theirs[name], name
    assert ours["masked_rows"] > 0


def test_the_adapter_of_every_step_is_the_servers_in_peft(undisturbed):
    gaps = [metrics["logprob_gap"] for metrics in undisturbed.metrics()]
    assert len(gaps) == 3 and max(gaps) < 1e-4
    assert undisturbed.adapter_bytes(3) != undisturbed.adapter_bytes(1)


@pytest.mark.parametrize("type", ["rollouts", "step", "checkpoint"])
def test_killed_and_resumed(server, base, tmp_path, undisturbed, type):
    one = worker(server, base, tmp_path, steps=3)
    one.run(at(2, lambda learner: learner.kill(), type))
    assert one.exit_code == -9
    assert ended(one.again()).exit_code == 0
    assert [one.adapter_bytes(step) for step in (1, 2, 3)] == [undisturbed.adapter_bytes(step) for step in (1, 2, 3)]
    assert [line["step"] for line in one.metrics()] == [1, 2, 3]


def deleted(server: SimpleNamespace, state: str) -> None:
    """As by the server's owner, or once it has expired."""
    model, kind, name = state.removeprefix("tinker://").split("/")
    url = f"{server.url}/api/v1/training_runs/{model}/checkpoints/{kind}/{name}"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=30)


def wiped(server: SimpleNamespace, state: str) -> None:
    """Files alone: the server says that it has it, and loads nothing."""
    model, _, name = state.removeprefix("tinker://").split("/")
    shutil.rmtree(server.saved / model / f"{name}.tar.gz")


@pytest.mark.parametrize("lose", [deleted, wiped])
def test_a_state_that_the_server_has_lost_costs_one_update(server, base, tmp_path, undisturbed, lose):
    one = worker(server, base, tmp_path, steps=3)
    one.run(at(2, lambda learner: learner.kill()))

    def state(step: int) -> str:
        return json.loads((one.output / f"checkpoint-{step}/tinker.json").read_text())["state"]

    lose(server, state(2))
    again = one.again()
    assert ended(again).adapter_bytes(3) == undisturbed.adapter_bytes(3)
    assert [message["step"] for message in again.of_type("rollouts")] == [1, 2]

    two = Worker(tmp_path, one.job | {"steps": 4}, program="tinker", start=Learner)
    lose(server, state(2))
    lose(server, state(3))
    for _ in range(2):  # it does not start again silently
        refused = two.run().messages[-1]["error"]
        assert refused["type"] == "BadJob" and "remove the folder to start again" in refused["message"]
