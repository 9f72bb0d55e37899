"""What the front and the generation process say to each other, and errors that a client is told.

Invariants: imports nothing heavy, since the front has no need of torch; an error's message names the field, its value
and the way out, in one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GenerationRequest:
    """One completion of `prompt`. `max_tokens` must fit into the context behind the prompt."""

    prompt: list[int]
    model: str
    """The base model's name or an adapter's."""
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    likeliest: int = 0
    """So many of the likeliest ids are told at every token."""


@dataclass(frozen=True)
class Outcome:
    """A finished completion: its ids, their log-probs in nats, and stop or length."""

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str
    cached_tokens: int
    likeliest: tuple[list[tuple[int, float]], ...] = ()
    """One list a token: ids and log-probs in nats, the likeliest first; empty where none were asked for."""


@dataclass(frozen=True)
class Ready:
    """The generation process serves requests; what the front must know of its model."""

    context: int
    eos: frozenset[int]
    base_id: str


class RequestError(Exception):
    """An error with an HTTP status, answered in OpenAI's shape."""

    status, type = 500, "InternalServerError"

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message, param, code)  # all three, since errors travel between the processes
        self.param, self.code = param, code

    def __str__(self) -> str:
        return self.args[0]

    def body(self) -> dict:
        """OpenAI's error object."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}


class BadRequest(RequestError):
    """The request cannot be served as it is."""

    status, type = 400, "BadRequestError"


class NotFound(RequestError):
    """The request names something that is not there."""

    status, type = 404, "NotFoundError"


class MethodNotAllowed(RequestError):
    """The path exists, the method on it does not."""

    status, type = 405, "MethodNotAllowedError"


class TooLarge(RequestError):
    """The body is over the limit."""

    status, type = 413, "RequestTooLargeError"


class Unavailable(RequestError):
    """The server is going down."""

    status, type = 503, "ServiceUnavailableError"

    @classmethod
    def stopping(cls) -> Unavailable:
        return cls("the server is shutting down; send the request to another one")
