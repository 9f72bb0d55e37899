"""
Helpers of the policy server's tests: a server process and an engine. Invariant: every process that is started here is
ended here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainer.serve.engine import Engine
from trainer.serve.errors import RequestError
from trainer.serve.generation import GenerationRequest, Outcome
from trainer.serve.worker import build

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running_engine(model: Path, **options: int) -> Iterator[Engine]:
    """An engine on its own thread, with 8 rows and a prefix cache of 64 MB unless told otherwise."""
    options = {"max_batch": 8, "threads": 1, "prefix_cache_mb": 64} | options
    engine = build(str(model), model_name="base", device="cpu", **options)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()
        engine.join(10)


def generate(engine: Engine, requests: list[GenerationRequest]) -> list[Outcome]:
    """Results of requests that are sent together, in their order."""
    results: list[Outcome | RequestError | None] = [None] * len(requests)
    finished = threading.Semaphore(0)
    for n, request in enumerate(requests):

        def done(result: Outcome | RequestError, n: int = n) -> None:
            results[n] = result
            finished.release()

        engine.submit(request, done)
    for _ in requests:
        assert finished.acquire(timeout=60)
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
