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
        function = {"name": match[1], "arguments": json.dumps(arguments, ensure_ascii=False)}
        calls.append({"id": f"call_{number}", "type": "function", "function": function})
    return content.strip(), calls


def _arguments(text: str, properties: dict) -> dict | None:
    if not text.strip():
        return {}
    arguments: dict[str, object] = {}
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


def coerce(value: str, schema: object) -> str | int | float | bool:
    """The value in the JSON type that the schema names; the string itself if it is not of that type."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    for name in kind if isinstance(kind, list) else [kind]:
        if name == "integer" and re.fullmatch(r"[+-]?\d+", value):
            return int(value)
        if name == "number":
            try:
                number = float(value)
            except ValueError:
                continue
            if math.isfinite(number):
                return int(number) if re.fullmatch(r"[+-]?\d+", value) else number
        if name == "boolean" and value.lower() in ("true", "false"):
            return value.lower() == "true"
    return value
