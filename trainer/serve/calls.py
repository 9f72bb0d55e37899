"""Tool calls in sampled text. Invariant: text either is read as a whole, or stays content; a number in the arguments
keeps its spelling, because the next prompt shows it again."""

import ast
import json
import math
import re
from collections.abc import Callable

SHOP_CALL = "<|call|>"
"""Begins a call of the base models in examples/shop: `<|call|>name(arg="value", arg2="value")`."""

TAGS = {
    "<tool_call>": "</tool_call>",  # Hermes, Qwen, Granite 4
    "<|tool_call_start|>": "<|tool_call_end|>",  # LFM2
    "<|tool_call>": "<tool_call|>",  # Gemma 4
    "<start_function_call>": "<end_function_call>",  # FunctionGemma
}
PREFIXES = ("<|tool_call|>", "<|python_tag|>")
"""Begin an answer that is nothing but calls: Granite 3 and Llama 3."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = r"[A-Za-z_][\w.\-]*"
_SHOP_ARGUMENT = rf'\s*({_NAME})\s*=\s*"([^"]*)"\s*'
_SHOP_CALL = re.compile(rf"\s*({_NAME})\s*\((\s*|{_SHOP_ARGUMENT}(?:,{_SHOP_ARGUMENT})*)\)\s*")
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*')
_BETWEEN = re.compile(r"[\s,;]*")
_GEMMA_CALL = re.compile(rf"\s*call:({_NAME})(\{{.*\}})\s*", re.DOTALL)
_GEMMA_QUOTE = re.compile(r'<\|"\|>|<escape>')
_LONGEST_PYTHON = 10_000
"""Characters of calls in Python's syntax; its parser needs far more memory than the text."""

Call = tuple[str, str]
"""A tool's name, and its arguments as a JSON object."""
Parse = Callable[[str, list[dict]], tuple[str, list[dict]]]
"""Splits a completion (without its end-of-turn token) into content and OpenAI tool calls. Returns (text, []) if any
part does not parse. The tools are the request's, in OpenAI's shape."""


def calls_shown_in(template: str) -> Parse:
    """Returns the reader of calls for models with this chat template. Every reader but that of examples/shop also takes
    an answer that is nothing but calls of offered tools: small models leave the tags out."""
    if SHOP_CALL in template and "<|start|>" not in template:
        return parse_shop_calls
    is_llama = '"parameters"' in template and re.search(r"python_tag|ipython", template) is not None
    tags = {begin: end for begin, end in TAGS.items() if begin in template}
    return lambda text, tools: parse_calls(text, tools, tags=tags, bare=is_llama)


def parse_shop_calls(text: str, tools: list[dict]) -> tuple[str, list[dict]]:
    """Reads calls of the base models in examples/shop. Schemas give the arguments their JSON types."""
    content, *parts = text.split(SHOP_CALL)
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}).get("properties") for t in tools}
    calls: list[Call] = []
    for part in parts:
        match = _SHOP_CALL.fullmatch(part)
        arguments = re.findall(_SHOP_ARGUMENT, match[2]) if match else []
        if match is None or len(dict(arguments)) < len(arguments):
            return text, []
        properties = schemas.get(match[1])
        properties = properties if isinstance(properties, dict) else {}
        fields = {name: coerce(value.strip(), properties.get(name, {})) for name, value in arguments}
        calls.append((match[1], _json_object(fields)))
    return (content.strip(), _openai(calls)) if calls else (text, [])


def parse_calls(text: str, tools: list[dict], *, tags: dict[str, str], bare: bool) -> tuple[str, list[dict]]:
    """Reads calls between `tags` with words around them, or an answer that is nothing but calls: of any name after one
    of PREFIXES or where `bare`, else of offered tools alone."""
    content, bodies = _tagged(text, tags)
    if bodies:
        calls = [call for body in bodies for call in _calls_in(body) or [None]]
        if None not in calls and not any(tag in content for pair in tags.items() for tag in pair):
            return content.strip(), _openai(calls)
        return text, []
    thoughts, separator, answer = text.rpartition("</think>")
    stripped = answer.strip()
    prefix = next((one for one in PREFIXES if stripped.startswith(one)), "")
    calls = _calls_in(stripped.removeprefix(prefix))
    offered = {tool["function"]["name"] for tool in tools}
    if calls and (prefix or bare or all(name in offered for name, _ in calls)):
        return thoughts + separator, _openai(calls)
    return text, []


def _tagged(text: str, tags: dict[str, str]) -> tuple[str, list[str]]:
    """Returns the text outside of tags, and what is inside. The end of the text closes the last tag."""
    for begin, end in tags.items():
        # Not a regular expression: one takes quadratic time where calls do not end.
        content, *parts = text.split(begin)
        if parts:
            pairs = [part.partition(end) for part in parts]
            if all(closed for _, closed, _ in pairs[:-1]):
                return content + "".join(after for *_, after in pairs), [body for body, *_ in pairs]
    return text, []


def _calls_in(text: str) -> list[Call] | None:
    """Returns the calls in a text that holds nothing else, bare or in code fences; else None."""
    outside, fenced = text.split("```")[::2], text.split("```")[1::2]
    if fenced:
        if any(part.strip() for part in outside):
            return None
        text = "\n".join(re.sub(r"^\w+\s", "", part) for part in fenced)
    return _json_calls(text) or _python_calls(text) or _gemma_calls(text)


def _json_calls(text: str) -> list[Call] | None:
    """Returns calls of the form {"name": .., "arguments" or "parameters": {..}}: one, several in a row, or a list."""
    decoder, calls = json.JSONDecoder(), []
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    at = _BETWEEN.match(text).end()
    try:
        while at < len(text):
            call, end = decoder.raw_decode(text, at)
            written = _ARGUMENTS.search(text, at, end)
            arguments, stop = decoder.raw_decode(text, written.end())
            if not isinstance(arguments, dict) or arguments not in (call.get("arguments"), call.get("parameters")):
                return None
            if not isinstance(call["name"], str):
                return None
            calls.append((call["name"], text[written.end() : stop]))
            at = _BETWEEN.match(text, end).end()
    except (ValueError, AttributeError, KeyError, RecursionError):
        return None
    return calls


def _python_calls(text: str) -> list[Call] | None:
    """Returns calls in Python's syntax with literal keyword arguments: `f(a=1)`, several lines of them, or a list."""
    text = text.strip()
    if len(text) > _LONGEST_PYTHON or not re.match(rf"\[?\s*{_NAME}\s*\(", text):
        return None
    lines = text.encode().split(b"\n")
    try:
        values = [statement.value for statement in ast.parse(text).body]
        calls = [call for value in values for call in (value.elts if isinstance(value, ast.List) else [value])]
        return [_python_call(call, lines) for call in calls]
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, MemoryError):
        return None


def _python_call(call: ast.Call, lines: list[bytes]) -> Call:
    """Raises ValueError or AttributeError for anything but a call with literal keyword arguments."""
    name = ast.unparse(call.func)
    fields = {one.arg: _literal(one.value, lines) for one in call.keywords}
    if call.args or None in fields or len(fields) < len(call.keywords) or not re.fullmatch(_NAME, name):
        raise ValueError(name)
    return name, _json_object(fields)


def _literal(node: ast.expr, lines: list[bytes]) -> str:
    """Returns a Python literal as JSON. Raises ValueError for anything else."""
    match node:
        case ast.List() | ast.Tuple():
            return f"[{', '.join(_literal(one, lines) for one in node.elts)}]"
        case ast.Dict():
            keys = [ast.literal_eval(key) for key in node.keys]
            if not all(isinstance(key, str) for key in keys):
                raise ValueError("a key that is no text")
            return _json_object(dict(zip(keys, (_literal(one, lines) for one in node.values), strict=True)))
    written = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
    is_number = node.lineno == node.end_lineno and _NUMBER.fullmatch(written)
    return written if is_number else json.dumps(ast.literal_eval(node), ensure_ascii=False, allow_nan=False)


def _gemma_calls(text: str) -> list[Call] | None:
    """Returns the call of the form `call:name{key:<escape>text<escape>,other:1}`; Gemma 4 quotes with another tag."""
    match = _GEMMA_CALL.fullmatch(text)
    if match is None:
        return None
    parts = _GEMMA_QUOTE.split(match[2])
    parts[::2] = [re.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', part) for part in parts[::2]]
    parts[1::2] = [json.dumps(part, ensure_ascii=False) for part in parts[1::2]]
    arguments = "".join(parts)
    try:
        return [(match[1], arguments)] if isinstance(json.loads(arguments), dict) else None
    except (ValueError, RecursionError):
        return None


def _json_object(fields: dict[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(name, ensure_ascii=False)}: {value}' for name, value in fields.items())}}}"


def _openai(calls: list[Call]) -> list[dict]:
    return [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]


def coerce(value: str, schema: object) -> str:
    """JSON: the value in the type that the schema names, a number as it is written; a string if it is not of it."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    for name in kind if isinstance(kind, list) else [kind]:
        if name in ("integer", "number") and re.fullmatch(r"[+-]?\d{1,4000}", value):  # Python reads 4,300 digits
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
