"""The two pipes to the gpu worker (docs/learner-protocol.md): JSON lines out on what was stdout, answers in on stdin.

Invariant: all other output to fd 1 (libraries, progress bars) is sent to stderr, which never fails. SIGTERM, SIGINT,
end of file on stdin and a closed stdout all mean the same: stop between two optimizer steps. Only `ask` raises
`Interrupted`, so the state that is saved afterwards is always that of a finished step. A learner that fails writes one
`error` line at its end."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO

from pydantic import BaseModel

from trainer.command import BadInput, is_out_of_memory, options_of, read_input

from .job import set_threads, use_device

TELL_SECONDS = 1.0
"""The shortest time between two lines of progress."""


OUT_OF_MEMORY = (
    "the trainer is out of memory; lower training.tokensPerForward, set training.gradientCheckpointing to true, "
    "take a smaller base model, or give the machine more memory"
)


class Interrupted(Exception):
    """Asked to stop. Raised between two optimizer steps only."""


class RolloutsFailed(RuntimeError):
    """The worker could not make what was asked for."""


class Diverged(RuntimeError):
    """The loss or its gradient is not finite; the last whole checkpoint is good."""


class SamplerDiffers(RuntimeError):
    """The sampler's log-probs are not those of the model that is trained."""


class ProtocolError(RuntimeError):
    """The worker wrote something that docs/learner-protocol.md does not allow."""


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
        self._source, self._sink = source, sink
        self._requests = 0
        self._stopping = self._waiting = False
        self._told = time.monotonic()

    @classmethod
    def take_stdio(cls) -> Channel:
        """Takes stdin and stdout for the protocol, sends all other output to stderr, and handles signals."""
        sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        sys.stdout = sys.stderr = io.TextIOWrapper(_Log(), encoding="utf-8", errors="replace", write_through=True)
        channel = cls(sys.stdin, sink)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, channel._on_signal)
        return channel

    def send(self, type: str, **fields: Any) -> None:
        """Writes one line. A worker that no longer reads stops the training at the next request, not in the middle."""
        try:
            self._sink.write(json.dumps({"type": type, **fields}, allow_nan=False, separators=(",", ":")) + "\n")
            self._sink.flush()
        except BrokenPipeError:
            self._stopping = True

    def progress(self, *, step: int, done: int, total: int) -> None:
        """Reports how many micro-batches of a step's update are done."""
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            self.send("progress", step=step, done=done, total=total)

    def ask(self, type: str, *, answers: dict[str, str], step: int, **fields: Any) -> dict[str, Any]:
        """Asks for something that a step needs and returns the answer. `answers`: by type of answer, the field that it
        has to hold.

        Raises Interrupted, RolloutsFailed (the worker says it could not) or ProtocolError."""
        self._requests += 1
        if not self._stopping:
            self.send(type, step=step, **fields, id=self._requests)
        line = self._read_line()
        try:
            answer = json.loads(line)
            kind, number = answer["type"], answer["id"]
            if number != self._requests or kind not in (*answers, "error"):
                raise ValueError(f"type {kind} id {number}")
            message = answer[answers.get(kind, "message")]
        except (ValueError, KeyError, TypeError) as error:
            raise ProtocolError(
                f"stdin: {line[:80]!r} does not answer {type} request {self._requests} ({error})"
            ) from error
        if kind == "error":
            raise RolloutsFailed(f"{type} of step {step}: {message}")
        return answer

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


def run_learner(
    argv: list[str], program: str, description: str, model: type[BaseModel], run: Callable[[Any, Channel], None]
) -> int:
    """A subcommand that speaks the learner protocol. Returns the exit code: 0 when done or interrupted, 1 after an
    error. `run` imports what is heavy (seconds) once the job has been checked."""
    path = options_of(argv, program, description, "job")["job"]
    channel = Channel.take_stdio()
    try:
        job = read_input(model, path, name="--job")
        processes = getattr(job, "processes", 1)
        use_device(processes, 0)
        set_threads(max(1, getattr(job, "threads", 1) // processes))
        run(job, channel)
    except Exception as error:
        kind, message = type(error).__name__, " ".join(str(error).split()) or "no message; see the log on stderr"
        if isinstance(error, BadInput):
            kind = "BadJob"
        else:
            traceback.print_exc(file=sys.stderr)
        if is_full(error):
            kind, message = "DiskFull", f"no room to save: {message}; free some, and the training resumes by itself"
        elif is_out_of_memory(error):
            kind, message = "OutOfMemory", f"{OUT_OF_MEMORY} ({message})"
        channel.send("error", error={"type": kind, "message": message})
        return 1
    return 0


_NO_ROOM = (
    "No space left on device",
    "Disk quota exceeded",
    # Messages of torch.save, whose writer does not pass on the cause of a short write.
    "PytorchStreamWriter failed writing",
    "iostream error",
)


def is_full(error: BaseException) -> bool:
    """Returns True if a write failed because the disk was full, in any library. The failure is transient."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if any(words in str(cause) for words in _NO_ROOM):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
