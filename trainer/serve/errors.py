"""Errors that a client is told. Invariant: the message names the field, its value and the way out, in one line."""

from __future__ import annotations


class RequestError(Exception):
    """An error with an HTTP status, answered in OpenAI's shape."""

    status = 500
    type = "InternalServerError"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.code = param, code

    def __reduce__(self):
        return _rebuild, (type(self), str(self), self.param, self.code)

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


def _rebuild(kind: type[RequestError], message: str, param: str | None, code: str | None) -> RequestError:
    """Errors travel between the processes."""
    return kind(message, param=param, code=code)
