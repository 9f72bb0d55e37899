"""The job file, and the conversations that it names. Invariant: what passes can be trained on; everything else is a
`BadJob` that names the field, the value and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, ValidationError, field_validator

from trainer.command import Strict, first_problem, read_input
from trainer.serve.protocol import Message
from trainer.train.job import BadJob, LoraJob


class SftJob(LoraJob):
    """Fields as in docs/learner-protocol.md. The worker gives other conversations another output_dir."""

    conversations: str
    epochs: float = Field(gt=0)
    steps: int | None = Field(ge=1)
    rows_per_step: int = Field(ge=1)

    INDECISIVE: ClassVar[set[str]] = LoraJob.INDECISIVE | {"conversations", "epochs"}

    @field_validator("conversations")
    @classmethod
    def _is_a_file(cls, path: str) -> str:
        if not Path(path).is_file():
            raise ValueError("no file there; name one with a conversation a line")
        return path


class Conversation(Strict):
    """A line of the file: messages and tools as docs/policy-server.md has them."""

    id: str
    messages: list[Message]
    tools: list[dict[str, Any]] | None


def read_job(path: str) -> SftJob:
    """Reads a job file. Raises BadJob."""
    return read_input(SftJob, Path(path), name="--job", refusal=BadJob)


def read_conversations(job: SftJob) -> Iterator[Conversation]:
    """Raises BadJob."""
    with Path(job.conversations).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Conversation.model_validate_json(line)
            except ValidationError as error:
                where = f"{job.conversations}:{number}"
                raise BadJob(f"{where} {first_problem(error, 'line').line}") from error
