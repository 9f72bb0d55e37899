"""From conversations to token rows. Invariant: every turn of the assistant's carries loss on the very ids that the
policy server would have sampled for it, its end included, after the very prompt that it would have been shown; nothing
else carries any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from trainer.serve.chat import ChatFormat
from trainer.serve.errors import BadRequest
from trainer.serve.protocol import for_template
from trainer.train.job import BadJob

from .job import Conversation, SftJob, read_conversations

NO_LOSS = -100
"""What torch's cross entropy leaves out."""


class Row(NamedTuple):
    input_ids: list[int]
    labels: list[int]


def rows_of(job: SftJob) -> list[Row]:
    """Rows of all conversations, in the file's order. Raises BadJob."""
    eos, context = _limits(Path(job.base_model))
    chat = ChatFormat(Path(job.base_model), eos)
    rows = [row for conversation in read_conversations(job) for row in _rows(conversation, chat, eos, context)]
    if not rows:
        raise BadJob(f"conversations {job.conversations}: holds no turn of the assistant's; name a file that does")
    return rows


def _limits(base: Path) -> tuple[frozenset[int], int | None]:
    """The ids that end a turn, and the longest row."""
    config = json.loads((base / "config.json").read_text())
    generation = base / "generation_config.json"
    eos = (json.loads(generation.read_text()) if generation.is_file() else config).get("eos_token_id")
    if eos is None:
        raise BadJob(f"base_model {base}: names no eos_token_id; set it in its generation_config.json")
    return frozenset(eos if isinstance(eos, list) else [eos]), config.get("max_position_embeddings")


def _rows(conversation: Conversation, chat: ChatFormat, eos: frozenset[int], context: int | None) -> list[Row]:
    """A turn whose prompt goes on from the row so far continues it; any other (a history that is rendered differently
    later) begins a new one, as in a rollout."""

    def bad(turn: int, problem: str) -> BadJob:
        return BadJob(f"conversation {conversation.id}: message {turn} {problem}")

    rows: list[Row] = []
    for turn, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        try:
            *before, said = for_template(conversation.messages[: turn + 1])
            prompt = chat.prompt_ids(before, conversation.tools)
            answer = chat.answer_ids(before, said, conversation.tools)
        except BadRequest as error:
            raise bad(turn, f"can't be rendered: {error}; correct or leave out the conversation") from error
        end = next((n for n, token in enumerate(answer) if token in eos), None)
        if end is None:
            raise bad(turn, f"is not ended by one of the ids {sorted(eos)}; the model's chat template has to end turns")
        answer = answer[: end + 1]
        last = rows[-1] if rows else None
        if last is None or prompt[: len(last.input_ids)] != last.input_ids:
            last = Row([], [])
            rows.append(last)
        given = prompt[len(last.input_ids) :]
        last.input_ids.extend(given + answer)
        last.labels.extend([NO_LOSS] * len(given) + answer)
        if context is not None and len(last.input_ids) > context:
            raise bad(
                turn, f"ends after {len(last.input_ids)} tokens, and the model has room for {context}; shorten it"
            )
    return rows
