"""A synthesized environment, served by `campaign serve-module` in its sandbox: JSON-RPC on stdin and stdout.

`campaign export` puts this file into each package that it writes, beside the environment. Invariant: any number of
threads and episodes share one program, which answers one request at a time; an error answer or the program's end raises
`EnvironmentFailed` and is never a reward.
"""

import json
import os
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any


class EnvironmentFailed(Exception):
    """The environment could not answer. The agent is not the cause."""


class Program:
    """Starts with the first request, and again with the first one after its end. CAMPAIGN names it, else `campaign`."""

    def __init__(self, module: Path) -> None:
        self._command = [*shlex.split(os.environ.get("CAMPAIGN", "campaign")), "serve-module", str(module)]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Returns the result of one of the protocol's methods. Raises EnvironmentFailed."""
        try:
            line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, allow_nan=False)
        except ValueError as error:
            raise EnvironmentFailed(f"{method}: {error}") from error
        with self._lock:
            process = self._running()
            try:
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
                text = process.stdout.readline()
            except OSError:
                text = ""
            if not text:
                raise EnvironmentFailed(f"the program ended with exit code {process.wait()}; its stderr says why")
        answer = json.loads(text)
        if "error" in answer:
            raise EnvironmentFailed(answer["error"]["message"])
        return answer["result"]

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            try:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
                self._process = subprocess.Popen(self._command, **pipes)
            except OSError as error:
                name = self._command[0]
                raise EnvironmentFailed(f"{name} does not start ({error}); set CAMPAIGN to the program") from error
        return self._process
