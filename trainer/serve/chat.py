"""Between messages and token ids: text is rendered and tokenized in this one place, by the model folder's own chat
template and tokenizer. And tool calls in the format that the template shows them in: of the shipped base models,
`<|call|>name(arg="value", arg2="value")`; of Hermes and Qwen, JSON in `<tool_call>`; of Llama 3, JSON alone. Text is
either parsed as a whole or stays content."""

import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.command import BadInput
from trainer.model_folder import eos_ids
from trainer.serve.messages import BadRequest


class ChatFormat:
    """Chat template and tokenizer of a model folder."""

    def __init__(self, folder: Path) -> None:
        """Raises BadInput for a folder without tokenizer, chat template or end of turns."""
        # Not AutoTokenizer: its import brings torch along, which the front has no use for.
        from transformers import PreTrainedTokenizerFast

        if not (folder / "tokenizer.json").is_file():
            raise BadInput(f"{folder}: no tokenizer.json there; save the model's fast tokenizer into the folder")
        self._tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        if not self._tokenizer.chat_template:
            raise BadInput(f"{folder}: no chat template there; add chat_template.jinja to the folder")
        self.eos = eos_ids(folder)
        """The ids that end a turn; what is shown to clients leaves them out."""
        self._tokens = self._tokenizer.convert_ids_to_tokens(list(range(len(self._tokenizer))))
        # A request that sets one of these could bring a template of its own, which may compute for ever.
        self._reserved = {"messages", *inspect.signature(self._tokenizer.apply_chat_template).parameters}
        self.parse_calls = calls_shown_in(self._tokenizer.chat_template)

    def prompt_ids(
        self,
        messages: list[dict],
        tools: list[dict] | None,
        *,
        ends: bool = False,
        variables: dict[str, Any] | None = None,
    ) -> list[int]:
        """Token ids of the conversation, ending where the assistant's turn begins, or with the last message.
        `variables` are the template's. Raises BadRequest."""
        if refused := sorted(self._reserved.intersection(variables or {})):
            problem = f"{', '.join(refused)} can't be set here; leave it out"
            raise BadRequest(f"chat_template_kwargs: {problem}", "chat_template_kwargs")
        return self._ids(self._rendered(messages, tools, ends=ends, variables=variables))

    def text(self, ids: list[int]) -> str:
        """Text of sampled ids, without the end-of-turn token."""
        return self._tokenizer.decode(ids[:-1] if ids and ids[-1] in self.eos else ids, skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """One token as the tokenizer spells it; models may have more rows than the tokenizer has tokens."""
        return self._tokens[token_id] if token_id < len(self._tokens) else f"<{token_id}>"

    def _rendered(
        self, messages: list[dict], tools: list[dict] | None, *, ends: bool, variables: dict[str, Any] | None = None
    ) -> str:
        """`ends`: with the last message; else where the assistant's turn begins."""
        try:
            return self._tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=not ends, tokenize=False, **(variables or {})
            )
        except Exception as error:  # whatever a template's own code raises is about its input
            raise BadRequest(f"messages: the model's chat template refuses them ({error})", "messages") from error

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids


CALL = "<|call|>"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NAME = r"[A-Za-z_][\w.\-]*"
_ARGUMENT = rf'\s*({_NAME})\s*=\s*"([^"]*)"\s*'
_CALL = re.compile(rf"\s*({_NAME})\s*\((\s*|{_ARGUMENT}(?:,{_ARGUMENT})*)\)\s*")


Parse = Callable[[str, list[dict]], tuple[str, list[dict]]]
"""Splits a completion (without its end-of-turn token) into content and OpenAI tool calls; (text, []) if any part does
not parse. The tools are the request's, in OpenAI's shape."""


def calls_shown_in(template: str) -> Parse:
    """How to read the calls of a model whose chat template this is."""
    if "<tool_call>" in template and "<function=" not in template:
        return parse_tagged_calls
    if CALL not in template and re.search(r"python_tag|ipython", template) and '"parameters"' in template:
        return parse_bare_calls
    return parse_calls


def parse_calls(text: str, tools: list[dict]) -> tuple[str, list[dict]]:
    """Calls of the shipped base models. Schemas give the arguments their JSON types."""
    content, *parts = text.split(CALL)
    schemas = {t["function"]["name"]: t["function"].get("parameters", {}).get("properties") for t in tools}
    calls: list[dict] = []
    for part in parts:
        match = _CALL.fullmatch(part)
        arguments = re.findall(_ARGUMENT, match[2]) if match else []
        if match is None or len(dict(arguments)) < len(arguments):
            return text, []
        properties = schemas.get(match[1])
        properties = properties if isinstance(properties, dict) else {}
        fields = (
            f"{json.dumps(name, ensure_ascii=False)}: {coerce(value.strip(), properties.get(name, {}))}"
            for name, value in arguments
        )
        calls.append(_called(match[1], f"{{{', '.join(fields)}}}", len(calls)))
    return (content.strip() if calls else text), calls


_GIVEN = re.compile(r'"(?:arguments|parameters)"\s*:\s*')


def parse_tagged_calls(text: str, _tools: list[dict]) -> tuple[str, list[dict]]:
    """Calls of Hermes and Qwen: `<tool_call>{"name": .., "arguments": {..}}</tool_call>`, with words around them."""
    calls, content, at = [], "", 0
    # Not a regular expression: one takes quadratic time where calls do not end.
    while (begin := text.find("<tool_call>", at)) >= 0 and (end := text.find("</tool_call>", begin)) >= 0:
        calls.append(_json_call(text[begin + len("<tool_call>") : end], len(calls)))
        content, at = content + text[at:begin], end + len("</tool_call>")
    content += text[at:]
    if not calls or None in calls or "tool_call>" in content:
        return text, []
    return content.strip(), calls


def parse_bare_calls(text: str, _tools: list[dict]) -> tuple[str, list[dict]]:
    """Calls of Llama 3: `{"name": .., "parameters": {..}}` and nothing else; several with semicolons between them."""
    bare, decoder, calls, at = text.strip().removeprefix("<|python_tag|>").strip(), json.JSONDecoder(), [], 0
    while at < len(bare):
        try:
            _, end = decoder.raw_decode(bare, at)
        except (ValueError, RecursionError):
            return text, []
        call = _json_call(bare[at:end], len(calls))
        between = re.compile(r"\s*(;\s*|$)").match(bare, end)
        if call is None or between is None:
            return text, []
        calls.append(call)
        at = between.end()
    return ("" if calls else text), calls


def _json_call(text: str, number: int) -> dict | None:
    """The call with its arguments as they are written, since a number has several spellings; None if it is none."""
    try:
        call = json.loads(text)
        written = _GIVEN.search(text)
        given, end = json.JSONDecoder().raw_decode(text, written.end())
        if not isinstance(given, dict) or given not in (call.get("arguments"), call.get("parameters")):
            return None
        return _called(call["name"], text[written.end() : end], number) if isinstance(call["name"], str) else None
    except (ValueError, AttributeError, KeyError, RecursionError):
        return None


def _called(name: str, arguments: str, number: int) -> dict:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


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
