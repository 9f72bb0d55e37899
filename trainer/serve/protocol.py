"""The request and response bodies of docs/policy-server.md. Invariant: what passes `parse` can be served; fields of the
OpenAI API that would change the answer and are not supported are refused, unknown ones are ignored as vLLM does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from trainer.command import Strict, first_problem
from trainer.serve.chat import ChatFormat
from trainer.serve.messages import BASE, BadRequest, GenerationRequest, Outcome

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
"""Tokenizers take no larger ones."""


class FunctionCall(Strict):
    name: str
    arguments: str


class ToolCall(Strict):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


def _joined(content: Any) -> Any:
    """Returns OpenAI's content parts as one text, and anything else as it is."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise ValueError('must be text, or parts of the form {"type": "text", "text": ".."}')
    return "".join(part["text"] for part in content)


class Message(Strict):
    role: Literal["system", "user", "assistant", "tool"]
    content: Annotated[str | None, BeforeValidator(_joined)] = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Function(Strict):
    model_config = ConfigDict(extra="allow")
    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class Tool(Strict):
    model_config = ConfigDict(extra="allow")
    type: Literal["function"]
    function: Function


def _only(*values: Any) -> Any:
    """A field of OpenAI's or vLLM's of which this server has no more than what `values` stand for."""

    def check(value: Any) -> Any:
        if value is not None and value not in values:
            raise ValueError("this policy server can't do it; leave it out")
        return value

    return Annotated[Any, BeforeValidator(check)]


class ChatRequest(Strict):
    model: str
    messages: list[Message] = Field(min_length=1)
    tools: list[Tool] | None = None
    tool_choice: _only("auto", "none") = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: _only(-1, 0) = None
    min_p: _only(0) = None
    repetition_penalty: _only(1) = None
    presence_penalty: _only(0) = None
    frequency_penalty: _only(0) = None
    seed: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    return_token_ids: bool | None = False
    n: _only(1) = None
    stream: _only(False) = None
    stop: _only([]) = None
    response_format: _only({"type": "text"}) = None
    logit_bias: _only({}) = None
    functions: _only([]) = None
    function_call: _only("auto", "none") = None
    modalities: _only(["text"]) = None
    add_generation_prompt: bool = True
    chat_template_kwargs: dict[str, Any] | None = None

    def offered_tools(self) -> list[dict]:
        """The tools that the model may call, in OpenAI's shape."""
        return [] if self.tool_choice == "none" else [tool.model_dump() for tool in self.tools or []]

    def prompt_ids(self, chat: ChatFormat) -> list[int]:
        """Returns the ids of the prompt, or those of the messages alone. Raises BadRequest."""
        messages, ends = for_template(self.messages), not self.add_generation_prompt
        return chat.prompt_ids(messages, self.offered_tools(), ends=ends, variables=self.chat_template_kwargs)

    def in_ids(self, prompt: list[int]) -> GenerateRequest:
        """Returns the request for `generate` with these prompt ids and the same sampling parameters."""
        params = SamplingParams(
            max_tokens=self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.seed,
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
        )
        return GenerateRequest(model=self.model, token_ids=prompt, sampling_params=params)


class SamplingParams(Strict):
    """The parameters of vLLM that a chat request can set; all others have vLLM's defaults."""

    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int | None = None
    logprobs: int | None = Field(default=None, ge=0, le=20)


class GenerateRequest(Strict):
    """Token ids in, token ids out; what `render` answers is one."""

    model: str = BASE
    token_ids: list[TokenId] = Field(min_length=1)
    sampling_params: SamplingParams

    def generation(self, *, context: int, vocabulary: int, field: str) -> GenerationRequest:
        """Returns the engine's request. Raises BadRequest with `field` for an unknown id or a full context."""
        if (largest := max(self.token_ids)) >= vocabulary:
            raise BadRequest(f"{field}: the model has no id {largest}; its ids are below {vocabulary}", field)
        room = context - len(self.token_ids)
        if room < 1:
            held = f"the context holds {context} and a sample needs one; send fewer"
            raise BadRequest(f"{field}: {len(self.token_ids)} tokens, {held}", field, "context_length_exceeded")
        params = self.sampling_params
        return GenerationRequest(
            prompt=self.token_ids,
            model=self.model,
            max_tokens=min(params.max_tokens or room, room),
            temperature=params.temperature,
            top_p=params.top_p,
            seed=params.seed,
            likeliest=params.logprobs or 0,
        )


class _Sampled(Strict):
    token_ids: list[TokenId]
    finish_reason: str


class _Generated(Strict):
    choices: list[_Sampled] = Field(min_length=1, max_length=1)


class DerenderRequest(Strict):
    """Sampled ids and the chat request that they answer. Ids that the tokenizer lacks are no text."""

    chat_request: ChatRequest
    generate_response: _Generated


class UnloadRequest(Strict):
    lora_name: str = Field(min_length=1)


class LoadRequest(UnloadRequest):
    lora_path: str = Field(min_length=1)


Body = TypeVar("Body", bound=BaseModel)


def parse(kind: type[Body], body: bytes) -> Body:
    """Reads a JSON body. Raises BadRequest that names the first bad field, its value and what it should be."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        field, line = first_problem(error, "body")
        raise BadRequest(line, field or None) from error


def completion(
    request: ChatRequest, *, prompt_ids: list[int], outcome: Outcome, chat: ChatFormat, number: int
) -> dict[str, Any]:
    """The body of a chat completion. `number` makes its id."""
    message = message_of(request, token_ids=outcome.token_ids, finish_reason=outcome.finish_reason, chat=chat)
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(outcome, lambda i: {"token": chat.token(i)}) if request.logprobs else None,
        "finish_reason": "tool_calls" if message.get("tool_calls") else outcome.finish_reason,
    }
    usage = {
        "prompt_tokens": len(prompt_ids),
        "completion_tokens": len(outcome.token_ids),
        "total_tokens": len(prompt_ids) + len(outcome.token_ids),
        "prompt_tokens_details": {"cached_tokens": outcome.cached_tokens},
    }
    answer = {**_chat_body(request, choice, number), "usage": usage}
    if request.return_token_ids:
        choice["token_ids"] = outcome.token_ids
        answer["prompt_token_ids"] = prompt_ids
    return answer


def message_of(request: ChatRequest, *, token_ids: list[int], finish_reason: str, chat: ChatFormat) -> dict[str, Any]:
    """The assistant's message that was sampled; calls are read in a whole one alone."""
    text = chat.text(token_ids)
    tools = request.offered_tools()
    content, calls = chat.parse_calls(text, tools) if tools and finish_reason == "stop" else (text, [])
    message = {"role": "assistant", "content": content if content or not calls else None}
    return {**message, "tool_calls": calls} if calls else message


def generated(outcome: Outcome, *, number: int) -> dict[str, Any]:
    """The body of `generate`."""
    choice = {"index": 0, "token_ids": outcome.token_ids, "finish_reason": outcome.finish_reason}
    choice["logprobs"] = _logprobs(outcome, lambda i: {"token_id": i})
    return {"request_id": f"generate-{number}", "choices": [choice]}


def derendered(request: DerenderRequest, *, chat: ChatFormat, number: int) -> dict[str, Any]:
    """The body of a chat completion of ids that were sampled before."""
    (sampled,) = request.generate_response.choices
    given = {"token_ids": sampled.token_ids, "finish_reason": sampled.finish_reason}
    message = message_of(request.chat_request, **given, chat=chat)
    choice = {"index": 0, "message": message, "finish_reason": sampled.finish_reason}
    return _chat_body(request.chat_request, choice, number)


def _chat_body(request: ChatRequest, choice: dict[str, Any], number: int) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": int(time.time())}
    return {**head, "model": request.model, "choices": [choice]}


def _logprobs(outcome: Outcome, name: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Returns OpenAI's log-probs object, in nats. `name` makes the fields that identify a token id."""
    tops = outcome.likeliest or ([],) * len(outcome.token_ids)
    return {
        "content": [
            {**name(i), "logprob": p, "top_logprobs": [{**name(one), "logprob": q} for one, q in top]}
            for i, p, top in zip(outcome.token_ids, outcome.logprobs, tops, strict=True)
        ]
    }


class _Written(float):
    """A number that templates show as it was written."""

    def __new__(cls, text: str) -> _Written:
        number = super().__new__(cls, text)
        number._text = text
        return number

    def __str__(self) -> str:
        return self._text


def _integer(text: str) -> int | _Written:
    return _Written(text) if text == "-0" else int(text)


def for_template(messages: list[Message]) -> list[dict]:
    """Messages as chat templates take them: content as text, arguments of calls as objects. Raises BadRequest."""
    shaped = []
    for number, message in enumerate(messages):
        out: dict[str, Any] = {"role": message.role, "content": message.content or ""}
        if message.tool_call_id is not None:
            out["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            where = f"messages.{number}.tool_calls"
            out["tool_calls"] = [_call(call, f"{where}.{n}") for n, call in enumerate(message.tool_calls)]
        shaped.append(out)
    return shaped


def _call(call: ToolCall, where: str) -> dict:
    try:
        arguments = json.loads(call.function.arguments, parse_int=_integer, parse_float=_Written)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        param = f"{where}.function.arguments"
        raise BadRequest(f"{param} {call.function.arguments[:60]!r}: must be a JSON object, as text", param)
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}
