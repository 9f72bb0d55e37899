"""
Tool calls in the text format of the shipped base models: `<|call|>name(arg="value", arg2="value")`, one after the
other.

Invariant: text is either parsed as a whole or not at all; what does not parse stays content, as it is.
"""

from __future__ import annotations

import json
import math
import re

CALL = "<|call|>"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = r"[A-Za-z_][\w.\-]*"
_ARGUMENT = re.compile(rf'\s*({_NAME})\s*=\s*"([^"]*)"\s*')
_CALL = re.compile(rf'\s*({_NAME})\s*\(((?:[^"()]|"[^"]*")*)\)\s*')


def parse(text: str, tools: list[dict]) -> tuple[str, list[dict]]:
    """
    Splits a completion (without its end-of-turn token) into content and OpenAI tool calls. `tools` are the request's,
    in OpenAI's shape; their schemas give the arguments their JSON types. Returns (text, []) if any part does not parse.
    """
    content, *parts = text.split(CALL)
    if not parts:
        return text, []
    schemas = {t["function"]["name"]: (t["function"].get("parameters") or {}).get("properties") or {} for t in tools}
    calls = []
    for number, part in enumerate(parts):
        match = _CALL.fullmatch(part)
        arguments = None if match is None else _arguments(match[2], schemas.get(match[1], {}))
        if match is None or arguments is None:
            return text, []
        fields = (f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in arguments.items())
        function = {"name": match[1], "arguments": "{" + ", ".join(fields) + "}"}
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
    return content.strip(), calls


def _arguments(text: str, properties: dict) -> dict[str, str] | None:
    """The values as JSON, by name."""
    if not text.strip():
        return {}
    arguments: dict[str, str] = {}
    position = 0
    while True:
        match = _ARGUMENT.match(text, position)
        if match is None or match[1] in arguments:
            return None
        arguments[match[1]] = coerce(match[2].strip(), properties.get(match[1], {}))
        position = match.end()
        if position == len(text):
            return arguments
        if text[position] != ",":
            return None
        position += 1


def coerce(value: str, schema: object) -> str:
    """JSON: the value in the type that the schema names, a number as it is written; a string if it is not of it."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    for name in kind if isinstance(kind, list) else [kind]:
        if name in ("integer", "number") and re.fullmatch(r"[+-]?\d+", value):
            return value if _NUMBER.fullmatch(value) else json.dumps(int(value))
        if name == "number":
            try:
                number = float(value)
            except ValueError:
                continue
            if math.isfinite(number):
                return value if _NUMBER.fullmatch(value) else json.dumps(number)
        if name == "boolean" and value.lower() in ("true", "false"):
            return value.lower()
    return json.dumps(value, ensure_ascii=False)
