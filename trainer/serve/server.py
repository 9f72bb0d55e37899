"""
Puts the parts together and runs them. Invariant: a signal, or the end of stdin, fails what is in flight with 503 and
ends the process with exit code 0; the `listening` line is printed when requests will be answered, not before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import torch
import uvicorn
from transformers.utils import logging as transformers_logging

from trainer.serve.adapters import AdapterRegistry
from trainer.serve.app import App
from trainer.serve.chat import ChatFormat
from trainer.serve.engine import Engine
from trainer.serve.metrics import Metrics
from trainer.serve.runner import ModelRunner

SHUTDOWN_SECONDS = 5


def build(
    folder: Path, *, name: str, slots: int, threads: int, cache_bytes: int, device: str
) -> tuple[App, Engine, AdapterRegistry, ChatFormat]:
    """
    Loads the model and makes the parts of a server; the engine is not started. Raises ValueError for an unusable model.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    runner = ModelRunner(folder, slots=slots, device=device)
    chat = ChatFormat(folder, runner.eos)
    registry = AdapterRegistry(name, runner.mix.linears)
    engine = Engine(runner, eos=runner.eos, metrics=Metrics(), cache_bytes=cache_bytes, threads=threads)
    return App(engine=engine, registry=registry, chat=chat, context=runner.context), engine, registry, chat


def serve(args: argparse.Namespace, listener: socket.socket) -> None:
    """Serves on a bound socket until it is told to stop."""
    app, engine, registry, _ = build(
        args.model,
        name=args.model_name,
        slots=args.max_batch,
        threads=args.threads,
        cache_bytes=args.prefix_cache_mb * 1024 * 1024,
        device=args.device,
    )
    if args.adapters_dir is not None:
        for config in sorted(args.adapters_dir.glob("*/adapter_config.json")):
            registry.load(config.parent.name, str(config.parent))
    engine.start()
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    asyncio.run(_run(_Server(config, url), engine, listener, exit_with_parent=args.exit_with_parent))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(json.dumps({"type": "listening", "url": self._url}, separators=(",", ":")), flush=True)

    @contextlib.contextmanager
    def capture_signals(self):
        yield  # `_run` handles them


async def _run(server: _Server, engine: Engine, listener: socket.socket, *, exit_with_parent: bool) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        engine.stop()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if exit_with_parent:
        threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True).start()
    await server.serve(sockets=[listener])
    engine.stop()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    loop.call_soon_threadsafe(stop)
