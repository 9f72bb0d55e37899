"""The two pipes to the gpu worker (docs/learner-protocol.md): JSON lines out on what was stdout, answers in on stdin.

Invariant: whoever else prints to fd 1 (libraries, progress bars) reaches stderr, which never fails. SIGTERM, SIGINT,
end of file on stdin and a closed stdout all mean the same: stop between two optimizer steps. Only `ask`
and `stop_if_asked` raise `Interrupted`, so the state that is saved afterwards is always that of a finished step. A
learner that breaks ends with one `error` line."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from .disk import is_full
from .job import BadJob


class Interrupted(Exception):
    """Asked to stop. Raised between two optimizer steps only."""


class RolloutsFailed(RuntimeError):
    """The worker could not make what was asked for."""


class ProtocolError(RuntimeError):
    """The worker wrote something that docs/learner-protocol.md does not allow."""


def policy_of(adapter: Path) -> dict[str, str]:
    """How messages name what was learned so far: the base model with this adapter."""
    return {"adapter": str(adapter)}


class _Log(io.RawIOBase):
    """The file that stderr is. What can't be written to it (a full disk) is lost: no reason to end a training."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, text: Any) -> int:
        with contextlib.suppress(OSError):
            os.write(2, text)
        return len(text)


class Channel:
    def __init__(self, source: TextIO, sink: TextIO) -> None:
        self._source = source
        self._sink = sink
        self._requests = 0
        self._stopping = False
        self._waiting = False

    @classmethod
    def take_stdio(cls) -> Channel:
        """Takes stdin and stdout for the protocol, sends all other output to stderr, and handles signals."""
        sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        sys.stdout = sys.stderr = io.TextIOWrapper(_Log(), encoding="utf-8", errors="replace", write_through=True)
        channel = cls(sys.stdin, sink)
        signal.signal(signal.SIGTERM, channel._on_signal)
        signal.signal(signal.SIGINT, channel._on_signal)
        return channel

    def send(self, message: dict[str, Any]) -> None:
        """Writes one line. A worker that no longer reads stops the training at the next request, not in the middle."""
        try:
            self._sink.write(json.dumps(message, allow_nan=False, separators=(",", ":")) + "\n")
            self._sink.flush()
        except BrokenPipeError:
            self._stopping = True

    def ask_rollouts(self, *, step: int, tasks: list[str], group_size: int, adapter: Path) -> Path:
        """Asks for `group_size` rollouts of each task with the adapter's weights; returns the batch file's path.

        Raises Interrupted, RolloutsFailed (the worker says it could not) or ProtocolError."""
        request = {"type": "rollouts", "step": step, "tasks": tasks, "group_size": group_size}
        answer = self.ask({**request, "policy": policy_of(adapter)}, fields={"rollouts": "file"})
        return Path(answer["file"])

    def ask(self, request: dict[str, Any], *, fields: dict[str, str]) -> dict[str, Any]:
        """Asks for something that a step needs, under a number of its own; returns the answer. `fields`: by type of
        answer, what it has to hold.

        Raises Interrupted, RolloutsFailed (the worker says it could not) or ProtocolError."""
        self._requests += 1
        if not self._stopping:
            self.send({**request, "id": self._requests})
        line = self._read_line()
        try:
            answer = json.loads(line)
            kind, number = answer["type"], answer["id"]
            if number != self._requests or kind not in (*fields, "error"):
                raise ValueError(f"type {kind} id {number}")
            if kind != "error":
                answer[fields[kind]]
                return answer
            message = str(answer["message"])
        except (ValueError, KeyError, TypeError) as error:
            asked = f"{request['type']} request {self._requests}"
            raise ProtocolError(f"stdin: {line[:80]!r} does not answer {asked} ({error})") from error
        raise RolloutsFailed(f"{request['type']} of step {request['step']}: {message}")

    def stop_if_asked(self) -> None:
        """For a learner that asks for nothing, between two steps. Raises Interrupted."""
        # Nobody writes to it: what can be read is its end.
        if self._stopping or select.select([self._source], [], [], 0)[0]:
            raise Interrupted

    def _read_line(self) -> str:
        self._waiting = True
        try:
            if self._stopping:
                raise Interrupted
            line = self._source.readline()
        finally:
            self._waiting = False
        if not line.endswith("\n"):  # end of file; a half-written line is no answer either
            raise Interrupted
        return line

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        if self._waiting:
            self._waiting = False  # a second signal must not raise while the first is handled
            raise Interrupted


def learner_main(argv: list[str], learn: Callable[[str, Channel], None], *, prog: str, description: str) -> int:
    """Runs a learner on stdin and stdout. Returns the exit code: 0 when done or interrupted, 1 after an error.

    `learn` is given the path of its job, and imports what is heavy (seconds) once it has checked that."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--job", required=True, metavar="FILE", help="job.json")
    job = parser.parse_args(argv).job
    channel = Channel.take_stdio()
    try:
        learn(job, channel)
    except Exception as error:
        if not isinstance(error, BadJob):
            traceback.print_exc(file=sys.stderr)
        kind, message = type(error).__name__, " ".join(str(error).split()) or "no message; see the log on stderr"
        if is_full(error):
            kind, message = "DiskFull", f"no room to save: {message}; free some, and it goes on by itself"
        channel.send({"type": "error", "error": {"type": kind, "message": message}})
        return 1
    return 0
