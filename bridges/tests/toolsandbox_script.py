"""Scripted agents, the same for ToolSandbox's own run and for the bridge."""

import ast


def after(messages):
    """The next message of a script; when there are none left, a word that ends nothing."""
    return next(messages, {"content": "ok"})


def results_in(messages):
    """Returns the console's answers so far, as text."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def filled(message, results):
    """Replaces arguments like "$2.0.person_id" by values of earlier results: here the first id in the third result."""
    calls = [
        {**call, "arguments": {name: value_of(value, results) for name, value in call["arguments"].items()}}
        for call in message.get("toolCalls", [])
    ]
    return {**message, "toolCalls": calls} if calls else message


def value_of(value, results):
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    number, *path = value[1:].split(".")
    found = ast.literal_eval(results[int(number)])
    for step in path:
        found = found[int(step) if step.isdigit() else step]
    return found
