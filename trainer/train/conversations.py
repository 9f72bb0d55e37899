"""The job of a training on conversations, and the token rows that these become.

Invariant: every turn of the assistant's carries loss on the very ids that the policy server would have sampled for it,
its end included, after the very prompt that it would have been shown; nothing else carries any."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, Field, ValidationError

from trainer.command import BadInput, Strict, blaming, first_problem
from trainer.serve.chat import ChatFormat
from trainer.serve.messages import BadRequest
from trainer.serve.protocol import Message, for_template

from .job import LoraJob

NO_LOSS = -100
"""What torch's cross entropy leaves out."""


def _is_a_file(path: str) -> str:
    if not Path(path).is_file():
        raise ValueError("no file there; name one with a conversation a line")
    return path


class SftJob(LoraJob):
    """Fields as in docs/learner-protocol.md. The worker gives other conversations another output_dir."""

    conversations: Annotated[str, AfterValidator(_is_a_file)]
    epochs: float = Field(gt=0)
    steps: int | None = Field(ge=1)
    rows_per_step: int = Field(ge=1)

    INDECISIVE: ClassVar[set[str]] = LoraJob.INDECISIVE | {"conversations", "epochs"}


class Conversation(Strict):
    """A line of the file: messages and tools as docs/policy-server.md has them."""

    id: str
    messages: list[Message]
    tools: list[dict[str, Any]] | None


class Row(NamedTuple):
    input_ids: list[int]
    labels: list[int]


def rows_of(job: SftJob) -> list[Row]:
    """Rows of all conversations, in the file's order. Raises BadInput."""
    base = Path(job.base_model)
    with blaming("base_model"):
        chat = ChatFormat(base)
    context = json.loads((base / "config.json").read_bytes()).get("max_position_embeddings")
    rows = [row for conversation in _conversations(job) for row in _rows(conversation, chat, context)]
    if not rows:
        raise BadInput(f"conversations {job.conversations}: holds no turn of the assistant's; name a file that does")
    return rows


def _conversations(job: SftJob) -> Iterator[Conversation]:
    with Path(job.conversations).open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield Conversation.model_validate_json(line)
            except ValidationError as error:
                problem = first_problem(error, "line").line
                raise BadInput(f"{job.conversations}:{number} {problem}") from error


def _rows(conversation: Conversation, chat: ChatFormat, context: int | None) -> list[Row]:
    """A turn whose prompt goes on from the row so far continues it; any other (a history that is rendered differently
    later) begins a new one, as in a rollout."""

    def bad(turn: int, problem: str) -> BadInput:
        return BadInput(f"conversation {conversation.id}: message {turn} {problem}")

    rows: list[Row] = []
    for turn, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        try:
            *before, last = for_template(conversation.messages[: turn + 1])
            prompt = chat.prompt_ids(before, conversation.tools)
            answer = chat.answer_ids(before, last, conversation.tools)
        except BadRequest as error:
            raise bad(turn, f"can't be rendered: {error}; correct or leave out the conversation") from error
        end = next((n for n, token in enumerate(answer) if token in chat.eos), None)
        if end is None:
            ids = sorted(chat.eos)
            raise bad(turn, f"is not ended by one of the ids {ids}; the model's chat template has to end turns")
        answer = answer[: end + 1]
        if not rows or prompt[: len(rows[-1].input_ids)] != rows[-1].input_ids:
            rows.append(Row([], []))
        row = rows[-1]
        given = prompt[len(row.input_ids) :]
        row.input_ids.extend(given + answer)
        row.labels.extend([NO_LOSS] * len(given) + answer)
        if context is not None and len(row.input_ids) > context:
            raise bad(turn, f"ends after {len(row.input_ids)} tokens, and the model has room for {context}; shorten it")
    return rows
