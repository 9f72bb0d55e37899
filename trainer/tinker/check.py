"""Whether a Tinker server can train what a campaign asks for, before anything is spent on it."""

from typing import Any

from pydantic import Field

from trainer.command import Closed
from trainer.train.job import Lora, ModelFolder

from .job import vocabulary_of
from .probe import check_found, probed
from .server import Server


class Question(Closed):
    url: str = Field(pattern=r"^https?://\S+$")
    server_model: str | None
    base_model: ModelFolder
    lora: Lora
    max_grad_norm: float = Field(ge=0)
    tries: bool
    """Whether a LoRA is made and some steps are taken with it; else the server is only asked for its models."""


def check(question: Question) -> dict[str, Any]:
    """{"model", "found"}. Raises BadInput for what the server can't do, and ServerFailed."""
    server = Server(question.url)
    model = server.base_model(question.server_model)
    if not question.tries:
        return {"model": model, "found": None}
    clip = question.max_grad_norm > 0
    vocabulary = vocabulary_of(question.base_model)
    adapter, found = probed(server, model, lora=question.lora, seed=1, vocabulary=vocabulary, clip=clip)
    server.leave(adapter)
    check_found(question.lora, question.max_grad_norm, found)
    return {"model": model, "found": found.as_json()}
