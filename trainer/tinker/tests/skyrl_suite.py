"""The learner against a real Tinker server: SkyRL's, with its JAX backend on CPU (`make test-tinker`).

The worker samples with PEFT from the adapter that the learner names, in float32: so `logprob_gap` is the server's
distance to PEFT. The server of `make test`, fake_server.py, answers with the bodies of recorded.json, which are held
against the real server's here; RECORD=1 writes them anew."""

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from trainer.tests.conftest import TARGETS, save_tiny_model
from trainer.tests.train_harness import ROOT, WEIGHTS, Message, Worker, at, make_job

CLIENT, SERVER = ROOT / ".venv-tinker/bin/python", ROOT / ".venv-skyrl/bin/python"
ENV = os.environ | {"TINKER_API_KEY": "tml-any"}
# What JAX has compiled is most of the time that this takes.
KEPT = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache/jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
VLLM = {
    **{"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
    **{"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
}
RECORDED = Path(__file__).with_name("recorded.json")
IDS = [10 + 7 * n % 40 for n in range(40)]
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
from trainer.train import grpo

build = grpo.build_model


def build_started(job):
    model = build(job)
    set_peft_model_state_dict(model, load_file({weights!r}))
    return model


grpo.build_model = build_started
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
    """Log-probs that are not the model's: what is beyond clip and delta is met, and one row brings none."""

    def write_batch(self, request: Message, rollouts: list[Message]) -> str:
        rows = [row for rollout in rollouts for row in rollout["rows"]]
        for number, row in enumerate(rows):
            shift = [0.5] * 7 if number % 3 == 2 else [-2.0, -0.3, -0.1, 0.0, 0.1, 0.3, 0.7]
            row["logprobs"] = [p + shift[(number + n) % 7] for n, p in enumerate(row["logprobs"])]
        rows[0]["logprobs"] = None
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


def test_stopped_and_resumed(server, base, tmp_path, undisturbed):
    one = worker(server, base, tmp_path, steps=3)
    assert ended(one.run(at(1, lambda learner: learner.terminate()))).of_type("interrupted")[0]["step"] == 1
    assert ended(one.again()).adapter_bytes(3) == undisturbed.adapter_bytes(3)


def prompt_logprobs(model: Any) -> list[float]:
    with torch.inference_mode():
        logps = model(input_ids=torch.tensor([IDS])).logits[0].float().log_softmax(-1)
    return [logps[n, token].item() for n, token in enumerate(IDS[1:])]


@pytest.mark.skipif(not os.environ.get("VLLM_PYTHON"), reason="VLLM_PYTHON names no Python with vLLM")
def test_the_adapter_is_the_servers_in_vllm(base, tmp_path, undisturbed):
    adapter = undisturbed.output / "checkpoint-3"
    without = prompt_logprobs(AutoModelForCausalLM.from_pretrained(base, dtype="auto").eval())
    model = AutoModelForCausalLM.from_pretrained(base, dtype="auto").eval()
    expected = prompt_logprobs(PeftModel.from_pretrained(model, adapter, autocast_adapter_dtype=False))
    port = free_port()
    options = ["--dtype", "float32", "--max-model-len", "128", "--enforce-eager", "--generation-config", "vllm"]
    options += ["--enable-lora", "--max-lora-rank", "8", "--lora-modules", f"ours={adapter}"]
    options += ["--gpu-memory-utilization", "0.3"]  # the part of main memory that has to be free
    options += ["--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        child = subprocess.Popen(
            [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", "--model", base, *options],
            env=os.environ | VLLM,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", child, tmp_path / "log")
        body = {"model": "ours", "prompt": IDS, "max_tokens": 1, "prompt_logprobs": 0}
        asked = urllib.request.Request(
            f"{url}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        answer = json.load(urllib.request.urlopen(asked, timeout=120))["choices"][0]["prompt_logprobs"]
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    served = [one[str(token)]["logprob"] for one, token in zip(answer[1:], IDS[1:], strict=True)]
    assert max(abs(a - b) for a, b in zip(served, expected, strict=True)) < 1e-4
    assert max(abs(a - b) for a, b in zip(without, expected, strict=True)) > 1e-2


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
    for _ in range(2):  # it is not begun anew in silence
        refused = two.run().messages[-1]["error"]
        assert refused["type"] == "BadJob" and "remove the folder to train anew" in refused["message"]


def test_two_at_once(server, base, tmp_path, undisturbed):
    one = worker(server, base, tmp_path / "one", steps=3)
    other = worker(server, base, tmp_path / "other", steps=3, seed=4, tasks=["t1", "t2", "t3"])
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda each: ended(each.run()), (one, other)))
    assert distance(one, undisturbed, 3) < 1e-6
    assert distance(other, one, 3) > 1e-3


@contextmanager
def recording(server: SimpleNamespace, base: Path) -> Iterator[SimpleNamespace]:
    """The same server behind a proxy. `found`: the first answer of each kind, by what was asked; its model is `base`
    there."""
    found: dict[str, Any] = {}
    futures: dict[str, str] = {}

    def keep(asked: str, body: bytes, status: int, content: bytes) -> None:
        if asked.startswith("DELETE"):
            return  # its path has ids, and what it answers is not read
        if asked.endswith("/archive"):
            found.setdefault("GET archive", {"status": status})
            return
        if asked.endswith("/download"):
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                config = next(one for one in tar.getmembers() if one.name.endswith("adapter_config.json"))
                content = tar.extractfile(config).read().replace(str(base).encode(), b"base")
                found.setdefault("adapter_config.json", json.loads(content))
            return
        try:
            answer = json.loads(content.replace(str(base).encode(), b"base"))
        except ValueError:
            return  # a forward pass
        if asked.endswith("/retrieve_future"):
            asked += f" {futures[json.loads(body)['request_id']]}"
        elif "request_id" in answer:
            futures[answer["request_id"]] = asked.rpartition("/")[2]
        key = asked if status < 400 else f"{asked} {status}"
        found.setdefault(key, {"status": status, "body": answer})

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            to = HTTPConnection(server.url.removeprefix("http://"), timeout=300)
            to.request(self.command, self.path, body, dict(self.headers.items()))
            answer = to.getresponse()
            content = answer.read()
            keep(f"{self.command} {self.path}", body, answer.status, content)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_DELETE = do_GET

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{proxy.server_port}", saved=server.saved, found=found)
    finally:
        proxy.shutdown()
        proxy.server_close()


def form(answer: Any) -> Any:
    """An answer without the ids and numbers that differ from one to the next."""
    if isinstance(answer, dict):
        return {name: form(value) for name, value in answer.items()}
    if isinstance(answer, str):
        return re.sub(r"_[0-9a-f]{8}|\d+", "#", answer)
    return "number" if isinstance(answer, float) else answer


def test_the_server_of_make_test_answers_as_it_does(server, base, tmp_path):
    with recording(server, base) as recorder:
        one = worker(recorder, base, tmp_path / "one", steps=2)
        one.run(at(2, lambda learner: learner.kill(), "rollouts"))
        ended(one.again())
        deleted(recorder, json.loads((one.output / "checkpoint-2/tinker.json").read_text())["state"])
        Worker(tmp_path / "one", one.job | {"steps": 3}, program="tinker", start=Learner).run()
        worker(recorder, base, tmp_path / "wide", lora=LORA | {"r": 9}).run()
    kept, found = json.loads(RECORDED.read_text()), recorder.found
    if os.environ.get("RECORD"):
        RECORDED.write_text(json.dumps(kept := {**kept, **found}, indent=2) + "\n")
    assert kept.keys() - found.keys() <= {"POST /api/v1/session_heartbeat"}  # which comes once in a while
    assert {key: form(found[key]) for key in found if key in kept} == {
        key: form(kept[key]) for key in kept if key in found
    }
