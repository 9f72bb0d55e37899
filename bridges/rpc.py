"""The process side of the environment protocol: JSON-RPC 2.0, one object a line, on stdin and stdout.

Invariants: stdout carries the protocol alone (all other output goes to stderr); every request gets one answer; the
process ends when stdin does.
"""

import contextlib
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, Generic, TextIO, TypeVar

Methods = dict[str, Callable[[dict[str, Any]], dict[str, Any]]]

PARSE, REQUEST, METHOD, PARAMS, ENVIRONMENT = -32700, -32600, -32601, -32602, -32000


class BadParams(Exception):
    """The request names something that does not exist. A retry does not help."""


Episode = TypeVar("Episode")


class Episodes(Generic[Episode]):
    """The open episodes by the names that answers give them; a name is never used twice."""

    def __init__(self) -> None:
        self._open: dict[str, Episode] = {}
        self._numbers = itertools.count(1)

    def add(self, episode: Episode) -> str:
        name = f"e{next(self._numbers)}"
        self._open[name] = episode
        return name

    def of(self, params: dict[str, Any]) -> Episode:
        """The episode that a request names; BadParams if it is not open."""
        if params["episode"] not in self._open:
            raise BadParams(f"params.episode: no open episode {params['episode']}")
        return self._open[params["episode"]]

    def close(self, params: dict[str, Any]) -> dict[str, Any]:
        self.of(params)
        del self._open[params["episode"]]
        return {}


@contextlib.contextmanager
def protocol_streams() -> Iterator[tuple[TextIO, TextIO]]:
    """Takes stdin and stdout for the protocol, before a benchmark is imported that prints."""
    # Ctrl-C reaches every process of the terminal; this one ends when its owner closes stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(0), encoding="utf-8") as requests, os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        sys.stdout = sys.stderr
        yield requests, answers


def serve(methods: Methods, requests: TextIO, answers: TextIO) -> None:
    """Answers requests in order, one by one, until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(methods, line), allow_nan=False) + "\n")
        answers.flush()


def answer(methods: Methods, line: str) -> dict[str, Any]:
    request_id = None
    try:
        request = json.loads(line)
        request_id = request["id"]
        method = methods[request["method"]]
    except json.JSONDecodeError as error:
        return failure(None, PARSE, f"not JSON: {error}")
    except (TypeError, KeyError) as error:
        known = f"there are {', '.join(methods)}"
        return failure(request_id, METHOD if request_id is not None else REQUEST, f"no method: {error}; {known}")
    try:
        return {"jsonrpc": "2.0", "id": request_id, "result": method(request.get("params") or {})}
    except BadParams as error:
        return failure(request_id, PARAMS, str(error))
    except Exception as error:
        return failure(request_id, ENVIRONMENT, f"{type(error).__name__}: {error}")


def failure(request_id: int | str | None, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
