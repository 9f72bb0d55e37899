"""Between messages and token ids: text is rendered and tokenized in this one place, by the model folder's own chat
template and tokenizer. And tool calls in the text format of the shipped base models,
`<|call|>name(arg="value", arg2="value")`, one after the other: text is either parsed as a whole or stays content."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

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

    def prompt_ids(self, messages: list[dict], tools: list[dict] | None) -> list[int]:
        """Token ids of the conversation, ending where the assistant's turn begins."""
        return self._ids(self._rendered(messages, tools, ends=False))

    def answer_ids(self, messages: list[dict], answer: dict, tools: list[dict] | None) -> list[int]:
        """Token ids that the assistant's message is written with after `prompt_ids` of those before it, its end and
        whatever the template puts after it included."""
        prompt = self._rendered(messages, tools, ends=False)
        whole = self._rendered([*messages, answer], tools, ends=True)
        if not whole.startswith(prompt):
            raise BadRequest("messages: the model's chat template changes what was before an answer", "messages")
        return self._ids(whole[len(prompt) :])

    def text(self, ids: list[int]) -> str:
        """Text of sampled ids, without the end-of-turn token."""
        return self._tokenizer.decode(ids[:-1] if ids and ids[-1] in self.eos else ids, skip_special_tokens=False)

    def token(self, token_id: int) -> str:
        """One token as the tokenizer spells it; models may have more rows than the tokenizer has tokens."""
        return self._tokens[token_id] if token_id < len(self._tokens) else f"<{token_id}>"

    def _rendered(self, messages: list[dict], tools: list[dict] | None, *, ends: bool) -> str:
        """`ends`: with the last message; else where the assistant's turn begins."""
        try:
            return self._tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=not ends, tokenize=False
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


def parse_calls(text: str, tools: list[dict]) -> tuple[str, list[dict]]:
    """Splits a completion (without its end-of-turn token) into content and OpenAI tool calls. `tools` are the
    request's, in OpenAI's shape; their schemas give the arguments their JSON types. Returns (text, []) if any part does
    not parse."""
    content, *parts = text.split(CALL)
    schemas = {t["function"]["name"]: (t["function"].get("parameters") or {}).get("properties") or {} for t in tools}
    calls: list[dict] = []
    for part in parts:
        match = _CALL.fullmatch(part)
        arguments = re.findall(_ARGUMENT, match[2]) if match else []
        if match is None or len(dict(arguments)) < len(arguments):
            return text, []
        properties = schemas.get(match[1], {})
        fields = (
            f"{json.dumps(name, ensure_ascii=False)}: {coerce(value.strip(), properties.get(name, {}))}"
            for name, value in arguments
        )
        function = {"name": match[1], "arguments": f"{{{', '.join(fields)}}}"}
        calls.append({"id": f"call_{len(calls)}", "type": "function", "function": function})
    return (content.strip() if calls else text), calls


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
