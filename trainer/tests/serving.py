"""Helpers of the policy server's tests: a server process, its client, and an engine. Invariant: every process that is
started here is ended here."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch

from trainer.serve.engine import Engine
from trainer.serve.messages import GenerationRequest, Outcome, RequestError
from trainer.tests.conftest import EOS

ROOT = Path(__file__).resolve().parents[2]
CONVERSATION = [
    {"role": "system", "content": "you are a help desk . look the account up first ."},
    {"role": "user", "content": "cancel the red lamp i42 please ."},
]


@contextmanager
def running_engine(model: Path, adapters: dict[str, Path] = {}, **options: Any) -> Iterator[Engine]:  # noqa: B006
    """Runs an engine on its own thread, with 8 rows and a prefix cache of 64 MB by default."""
    engine = Engine(model, **{"max_batch": 8, "threads": 1, "prefix_cache_mb": 64, **options})
    for name, path in adapters.items():
        engine.registry.load(name, str(path))
    engine.start()
    try:
        yield engine
    finally:
        engine.stop(10)


def submitted(engine: Engine, request: GenerationRequest) -> Future[Outcome | RequestError]:
    """Its result to come."""
    future: Future[Outcome | RequestError] = Future()
    engine.submit(request, future.set_result)
    return future


def generate(engine: Engine, requests: list[GenerationRequest]) -> list[Outcome]:
    """Results of requests that are sent together, in their order."""
    results = [future.result(60) for future in [submitted(engine, request) for request in requests]]
    for result in results:
        if isinstance(result, RequestError):
            raise result
    return results  # type: ignore[return-value]


def start_server(*options: str) -> subprocess.Popen[str]:
    """A server process with pipes on stdin, stdout and stderr."""
    command = [sys.executable, "-m", "trainer", "serve", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@contextmanager
def running_server(model: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port: (process, url)."""
    process = start_server("--model", str(model), "--port", "0", "--exit-with-parent", *options)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, json.loads(line)["url"]
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()


def ask(url: str, headers: dict[str, str] | None = None, **fields):
    body = {"model": "base", "messages": CONVERSATION, "seed": 1, "logprobs": True, "return_token_ids": True} | fields
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(EOS + 1, 60), k=count)


def assert_logprobs(plain: torch.nn.Module, request: GenerationRequest, outcome: Outcome) -> None:
    """The outcome's log-probs are those of a forward over this row alone."""
    ids = torch.tensor([request.prompt + outcome.token_ids])
    with torch.no_grad():
        logprobs = plain(ids).logits[0].log_softmax(-1)
    begin = len(request.prompt) - 1
    expected = [logprobs[begin + n, token].item() for n, token in enumerate(outcome.token_ids)]
    np.testing.assert_allclose(outcome.logprobs, expected, atol=1e-4)
