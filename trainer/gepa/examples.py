"""Rollouts as the reflection model reads them: what was asked, what was done, what came of it.

Invariant: a function of the rollouts and the room; long texts are cut to the same length each, and every cut says how
much is missing."""

from __future__ import annotations

import json
from typing import Any

from .worker import Rollout

TEMPLATE_CHARS = 2000
"""GEPA's own words, and the headings of the examples."""
LENGTHS = (4000, 2000, 1000, 500, 250, 120, 60)
"""Characters of a text; the first that leaves room is taken."""

Example = dict[str, Any]


def examples(rollouts: list[Rollout], *, shows_system: bool, room: int) -> list[Example]:
    """One example a rollout. `shows_system`: the environment's own system message stays beside the prompt."""
    for length in LENGTHS:
        shown = [_example(rollout, shows_system, length) for rollout in rollouts]
        if sum(len(json.dumps(one, ensure_ascii=False)) for one in shown) <= room - TEMPLATE_CHARS:
            break
    return shown


def _example(rollout: Rollout, shows_system: bool, length: int) -> Example:
    messages = rollout.messages
    said = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    first = said[0] if said else len(messages)
    system = [message["content"] for message in messages[:first] if message["role"] == "system"]
    opening = [message for message in messages[:first] if message["role"] != "system"]
    inputs = {"Conversation until the assistant's first answer": _transcript(opening, length)}
    if system and shows_system:
        inputs = {"System message that follows the instructions": cut("\n".join(system), length), **inputs}
    return {
        "Inputs": inputs,
        "Generated Outputs": _transcript(messages[first:], length),
        "Feedback": _feedback(rollout, length),
    }


def _transcript(messages: list[dict[str, Any]], length: int) -> str:
    lines = []
    for message in messages:
        if message["content"]:
            lines.append(f"{message['role']}: {cut(message['content'], length)}")
        for call in message.get("toolCalls") or []:
            lines.append(f"{message['role']} calls {call['name']}({cut(_compact(call['arguments']), length)})")
    return "\n".join(lines) or "(nothing)"


def _feedback(rollout: Rollout, length: int) -> str:
    outcome = "the task is solved" if rollout.reward >= 1 else "the task is not solved"
    lines = [f"Reward {rollout.reward:g} of 1: {outcome}. The conversation ended by {rollout.stop_reason}."]
    if rollout.reference:
        actions = "; ".join(f"{one['name']}({_compact(one['arguments'])})" for one in rollout.reference["actions"])
        told = "; ".join(rollout.reference["tell"])
        lines.append(f"A right solution does: {cut(actions, length) or 'nothing'}.")
        lines.append(f"It tells the user: {cut(told, length) or 'nothing in particular'}.")
    return "\n".join(lines)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, length: int) -> str:
    """The beginning of a text, and how much is missing."""
    return text if len(text) <= length else f"{text[:length]}... ({len(text) - length} more characters)"
