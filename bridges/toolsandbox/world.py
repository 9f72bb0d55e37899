"""Keeps ToolSandbox's state of the process separate for each episode.

Invariant: outside of `entered` blocks no state of an episode remains in the process, so any number of them take turns.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import requests
from tool_sandbox.common.execution_context import ExecutionContext, get_current_context, set_current_context
from tool_sandbox.roles import execution_environment
from tool_sandbox.tools import contact, messaging, rapid_api_search_tools, reminder

from .library import Clock

# Calls made at once are tried in every order, which grows as the factorial: this is enough for five calls.
MAX_EXECUTIONS = 600


class OutsideError(Exception):
    """A web service has failed. The agent is not the cause."""


class World:
    """The state of one episode: database and console, the clock, the ids that are drawn."""

    _entered: "World | None" = None

    def __init__(self, context: ExecutionContext, clock: Clock, seed: str) -> None:
        self.context = context
        self._clock = clock
        self._ids = Random(seed)
        self._outside_error: str | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Time passes with the messages, a second each: what is made later is newer."""
        set_current_context(self.context)
        self._clock.set(self.context.max_sandbox_message_index)
        World._entered = self
        try:
            yield
        finally:
            World._entered = None
            # Calls made at once leave another context than they found.
            self.context = get_current_context()
        if self._outside_error is not None:
            raise OutsideError(self._outside_error)

    @staticmethod
    def draw_id() -> UUID:
        assert World._entered
        return UUID(int=World._entered._ids.getrandbits(128), version=4)

    @staticmethod
    def get(**request: Any) -> requests.Response:
        """Sends a request. ToolSandbox shows a failure to the agent, so `entered` raises it again as OutsideError."""
        assert World._entered
        try:
            response = requests.get(**request, timeout=30)
        except requests.RequestException as error:
            World._entered._outside_error = f"{request['url']}: {error}"
            raise
        if response.status_code in (401, 403, 429) or response.status_code >= 500:
            World._entered._outside_error = f"{request['url']}: status {response.status_code}"
        return response


def orders(calls: Iterable[Any]) -> Iterator[Sequence[Any]]:
    """Yields all orders of few calls, but of many only the given order, its reverse (so every pair is seen both ways
    round) and random ones."""
    calls = list(calls)
    if math.factorial(len(calls)) * len(calls) <= MAX_EXECUTIONS:
        yield from itertools.permutations(calls)
        return
    yield tuple(calls)
    yield tuple(reversed(calls))
    random = Random(len(calls))
    for _ in range(MAX_EXECUTIONS // len(calls) - 2):
        yield tuple(random.sample(calls, len(calls)))


for module in (contact, messaging, reminder):
    module.uuid4 = World.draw_id
rapid_api_search_tools.requests = SimpleNamespace(get=World.get)
execution_environment.itertools = SimpleNamespace(permutations=orders)
