"""A synthesized environment, served by `campaign serve-module` in its sandbox: JSON-RPC on stdin and stdout.

`campaign export` puts this file into each package that it writes, beside the environment. Invariant: any number of
threads and episodes share one program; what it answers with an error, and its end, are `EnvironmentFailed`, and never a
reward.
"""

import itertools
import json
import os
import shlex
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any


class EnvironmentFailed(Exception):
    """The environment could not answer; nothing that the agent did."""


class Program:
    """Starts with the first request, and again with the first one after its end. CAMPAIGN names it, else `campaign`."""

    def __init__(self, module: Path) -> None:
        self._command = [*shlex.split(os.environ.get("CAMPAIGN", "campaign")), "serve-module", str(module)]
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiting: dict[int, Future[dict[str, Any]]] = {}

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one of the protocol's methods. Throws EnvironmentFailed."""
        return self.send(method, **params).result()

    def send(self, method: str, **params: Any) -> "Future[dict[str, Any]]":
        """As `request`, for those who wait by `asyncio.wrap_future`."""
        answer: Future[dict[str, Any]] = Future()
        asked = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        try:
            line = json.dumps(asked, allow_nan=False)
        except ValueError as error:
            raise EnvironmentFailed(f"{method}: {error}") from error
        with self._lock:
            process = self._running()
            self._waiting[asked["id"]] = answer
            try:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            except OSError:
                # It has just ended: the thread that reads says so to all that wait.
                pass
        return answer

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            try:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
                self._process = subprocess.Popen(self._command, **pipes)
            except OSError as error:
                name = self._command[0]
                raise EnvironmentFailed(f"{name} does not start ({error}); set CAMPAIGN to the program") from error
            self._waiting = {}
            threading.Thread(target=self._read, args=(self._process, self._waiting), daemon=True).start()
        return self._process

    def _read(self, process: "subprocess.Popen[str]", waiting: dict[int, Future[dict[str, Any]]]) -> None:
        for line in process.stdout:
            answer = json.loads(line)
            # Of a line that it could not read it can't say whose it was.
            for number in list(waiting) if answer["id"] is None else [answer["id"]]:
                asked = waiting.pop(number, None)
                # Nobody waits any more where a task of asyncio's was cancelled.
                if asked is None or not asked.set_running_or_notify_cancel():
                    continue
                if "error" in answer:
                    asked.set_exception(EnvironmentFailed(answer["error"]["message"]))
                else:
                    asked.set_result(answer["result"])
        code = process.wait()
        with self._lock:
            for asked in filter(Future.set_running_or_notify_cancel, waiting.values()):
                asked.set_exception(EnvironmentFailed(f"the program ended with exit code {code}; its stderr says why"))
            waiting.clear()
