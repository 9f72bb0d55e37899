"""
The front process. Invariants: a signal, or the end of stdin, fails what is in flight with 503 and ends both processes
with exit code 0; the `listening` line is printed when requests will be answered, not before.
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
from collections.abc import Callable, Iterator

import uvicorn

from trainer.serve.app import App
from trainer.serve.engine_client import EngineClient
from trainer.serve.errors import Unavailable

SHUTDOWN_SECONDS = 5


async def serve(args: argparse.Namespace, listener: socket.socket) -> None:
    """Serves on a bound socket until it is told to stop. Raises RequestError or ValueError for what a user can cure."""
    options = ("model_name", "max_batch", "threads", "prefix_cache_mb", "device")
    engine = EngineClient({"model": str(args.model)} | {name: getattr(args, name) for name in options})
    engine.listen()
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        engine.close(Unavailable("the server is shutting down; send the request to another one"))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if args.exit_with_parent:
        threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True).start()
    try:
        await _serve(args, listener, engine)
    except Unavailable:
        if not stopped.is_set():
            raise
    finally:
        stop()
        engine.kill(SHUTDOWN_SECONDS)


async def _serve(args: argparse.Namespace, listener: socket.socket, engine: EngineClient) -> None:
    # Imported while the other process loads the model.
    from trainer.moe_gate.gate import GATE_CONFIG
    from trainer.peft_folder import CONFIG
    from trainer.serve.chat import ChatFormat

    ready = await engine.ready()
    chat = ChatFormat(args.model, ready.eos)
    if args.adapters_dir is not None:
        found = [config for name in (CONFIG, GATE_CONFIG) for config in args.adapters_dir.glob(f"*/{name}")]
        for config in sorted(found):
            await engine.call("load", (config.parent.name, str(config.parent)))
    app = App(engine=engine, chat=chat, ready=ready, base_name=args.model_name)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _Server(config, listener)

    async def follow() -> None:
        await engine.gone.wait()
        server.should_exit = True

    follower = asyncio.create_task(follow())
    await server.serve(sockets=[listener])
    follower.cancel()
    await engine.call("names")  # raises what ended the generation process


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, listener: socket.socket) -> None:
        super().__init__(config)
        host, port = listener.getsockname()[:2]
        self._url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(json.dumps({"type": "listening", "url": self._url}, separators=(",", ":")), flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve` handles them


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    loop.call_soon_threadsafe(stop)
