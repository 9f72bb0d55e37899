"""Converts messages between the protocol's form and tau2's. Invariant: the content is neither extended nor cut."""

from typing import Any

from tau2.data_model.message import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage


def to_tau2(message: dict[str, Any]) -> AssistantMessage | UserMessage:
    """Converts a message of the agent or the user. An empty text or list of calls becomes None, as in a model's API."""
    role = message["role"]
    calls = [
        ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"], requestor=role)
        for call in message.get("toolCalls") or []
    ]
    kind = AssistantMessage if role == "assistant" else UserMessage
    return kind(role=role, content=message["content"] or None, tool_calls=calls or None)


def to_protocol(message: Message) -> dict[str, Any]:
    spoken = {"role": message.role, "content": message.content or ""}
    if isinstance(message, ToolMessage):
        return {**spoken, "toolCallId": message.id, **({"requestor": "user"} if message.requestor == "user" else {})}
    calls = getattr(message, "tool_calls", None)
    if not calls:
        return spoken
    return {**spoken, "toolCalls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls]}
