"""Messages between the front and the generation process, and the errors that are sent to clients.

Invariants: imports nothing heavy, since the front has no need of torch; an error's message names the field, its value
and the fix, in one line."""

from dataclasses import dataclass
from http import HTTPStatus

BASE = "base"
"""The base model's name in requests."""


@dataclass(frozen=True)
class GenerationRequest:
    """One completion of `prompt`. `max_tokens` must fit into the context behind the prompt."""

    prompt: list[int]
    model: str
    """BASE or an adapter's name."""
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    likeliest: int = 0
    """The number of most likely ids that are reported at every token."""


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
    """The generation process serves requests; holds the properties of its model that the front needs."""

    context: int
    base_id: str
    vocabulary: int
    """Ids that it has embeddings of."""


class RequestError(Exception):
    """An error with an HTTP status, answered in OpenAI's shape."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None, status: HTTPStatus | None = None
    ) -> None:
        super().__init__(message, param, code, status)  # all of them, since errors travel between the processes
        self.param, self.code, self.status = param, code, status or self.status

    def __str__(self) -> str:
        return self.args[0]

    @property
    def type(self) -> str:
        """The status as OpenAI names it: BadRequestError."""
        return f"{self.status.phrase.replace(' ', '').removesuffix('Error')}Error"


OUT_OF_MEMORY = "out of memory; lower policyServer.maxBatch, take a smaller base model, or give the machine more memory"


class BadRequest(RequestError):
    status = HTTPStatus.BAD_REQUEST


class NotFound(RequestError):
    status = HTTPStatus.NOT_FOUND


class Unavailable(RequestError):
    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, message: str = "the server is shutting down; send the request to another one", *_: None) -> None:
        super().__init__(message)
