"""The front's side of the generation process. Invariant: every request gets its result, or an Unavailable once the
process is gone."""

import asyncio
import json
import pickle
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from itertools import count
from typing import Any

from trainer.keys import environment_without_keys
from trainer.serve.messages import OUT_OF_MEMORY, GenerationRequest, Outcome, Ready, RequestError, Unavailable


class EngineClient:
    """Starts the generation process and talks to it, on one event loop. Messages are those of multiprocessing's
    Connection, which the process uses; here asyncio buffers them, so that neither side waits for the other to read."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Starts the process; `options` are those of Engine."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "trainer.serve.worker", str(theirs.fileno()), json.dumps(options)]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            # Threads that wait for others sleep; spinning ones take the cores from trainers (docs/decisions.md)
            env={"OMP_WAIT_POLICY": "PASSIVE", **environment_without_keys()},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,  # stdout carries the listening line alone
        )
        theirs.close()
        self._numbers = count(1)
        self._loop = asyncio.get_running_loop()
        self._ready = self._loop.create_future()
        self._pending: dict[int, asyncio.Future[Any]] = {0: self._ready}
        self._closed: RequestError | None = None
        self.gone = asyncio.Event()
        """Set when the process has ended or `close` was called."""
        self._writer: asyncio.StreamWriter | None = None  # set before the process can be ready
        self._receiving = self._loop.create_task(self._receive(ours))

    async def ready(self) -> Ready:
        """Waits until the model is loaded. Raises RequestError with the reason why it cannot be served."""
        return await self._ready

    async def generate(self, request: GenerationRequest) -> Outcome:
        """One completion. Cancelling the call takes the request out of the batch."""
        number, future = self._send("generate", request)
        try:
            return await future
        except asyncio.CancelledError:
            self._send("cancel", number)
            raise

    async def call(self, operation: str, arguments: Any = None) -> Any:
        """One of the worker's operations: load, unload, names, find."""
        return await self._send(operation, arguments)[1]

    def close(self, error: RequestError) -> None:
        """Ends everything under way with `error` and lets the process go."""
        if self._closed is not None:
            return
        self._closed = error
        if self._writer:
            self._writer.close()
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
        self._pending.clear()
        self.gone.set()

    def kill(self, seconds: float) -> None:
        """Waits for the process after `close`, and ends it if it takes longer."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, operation: str, arguments: Any) -> tuple[int, asyncio.Future[Any]]:
        if self._closed is not None:
            raise self._closed
        number, future = next(self._numbers), self._loop.create_future()
        if operation != "cancel":  # which is not answered
            self._pending[number] = future
        body = pickle.dumps((number, operation, arguments))
        self._writer.write(struct.pack("!i", len(body)) + body)
        return number, future

    async def _receive(self, connection: socket.socket) -> None:
        reader, self._writer = await asyncio.open_connection(sock=connection)
        try:
            while True:
                (size,) = struct.unpack("!i", await reader.readexactly(4))
                number, result = pickle.loads(await reader.readexactly(size))
                future = self._pending.pop(number, None)
                if future is None or future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        except (EOFError, OSError):
            self.close(
                Unavailable(f"the generation process {await asyncio.to_thread(self._end)}; start the server again")
            )

    def _end(self) -> str:
        """Returns how the process ended. The kernel kills so when memory runs out, and nothing else says it."""
        with suppress(subprocess.TimeoutExpired):
            if self._process.wait(1) == -signal.SIGKILL:
                return f"was killed, maybe {OUT_OF_MEMORY}"
        return "has ended; its log says why"
