"""Hostile and malformed requests to the policy server: each is answered with 4xx, and the server keeps answering."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from trainer.serve import server
from trainer.serve.chat import parse_bare_calls, parse_tagged_calls
from trainer.serve.messages import Ready
from trainer.serve.sampling import sample
from trainer.tests.serving import CONVERSATION, ask

HOST = (b"host", b"127.0.0.1:8000")
CHAT = "/v1/chat/completions"
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def post(url: str, path: str, body: str, **headers: str) -> httpx.Response:
    return httpx.post(url + path, content=body.encode(), headers={"content-type": "application/json", **headers})


def test_a_web_page_can_not_stop_the_server_with_a_template_of_its_own(url):
    body = json.dumps({"model": "base", "messages": CONVERSATION, "chat_template_kwargs": {"chat_template": ENDLESS}})
    for path in (CHAT, f"{CHAT}/render"):
        refused = post(url, path, body)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "chat_template_kwargs"
    harmless = json.dumps({"model": "base", "messages": CONVERSATION, "max_tokens": 1})
    # What a page can send without the browser asking first, and what one that has rebound its name sends.
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert post(url, CHAT, harmless, **{"content-type": kind}).status_code == 415
    for host in ("evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        for path in ("/health", "/metrics", "/v1/models"):
            assert httpx.get(url + path, headers={"host": host}).status_code == 403
        assert post(url, CHAT, harmless, host=host).status_code == 403
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000"):
        assert httpx.get(f"{url}/health", headers={"host": host}).status_code == 200
    assert post(url, CHAT, harmless, **{"content-type": "Application/JSON; charset=utf-8"}).status_code == 200


REQUEST = {
    **{"model": "base", "messages": CONVERSATION, "max_tokens": 1, "max_completion_tokens": 1, "temperature": 1},
    **{"top_p": 1, "seed": 1, "logprobs": True, "top_logprobs": 1, "n": 1, "stop": [], "tool_choice": "auto"},
    "tools": [{"type": "function", "function": {"name": "f", "description": "", "parameters": {"properties": {}}}}],
    "chat_template_kwargs": {"enable_thinking": False},
}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BODIES = {
    f"{CHAT}/render": {**REQUEST, "messages": [*CONVERSATION, {"role": "assistant", "tool_calls": [CALL]}]},
    "/inference/v1/generate": {
        **{"model": "base", "token_ids": [11, 12]},
        "sampling_params": {"max_tokens": 1, "temperature": 1, "top_p": 1, "seed": 1, "logprobs": 1},
    },
    f"{CHAT}/derender": {
        "chat_request": {name: REQUEST[name] for name in ("model", "messages", "tools")},
        "generate_response": {"choices": [{"token_ids": [11, 12], "finish_reason": "stop"}]},
    },
    "/v1/load_lora_adapter": {"lora_name": "n", "lora_path": "/"},
    "/v1/unload_lora_adapter": {"lora_name": "n"},
}
RAW = ["[" * 150 + "]" * 150, "1" + "0" * 30, "9" * 5000, "NaN", "1e-320", '{"a":1}', '"\\u0000"', '"\\ud800"']
RAW += [json.dumps("a" * 5000), "null", "-1"]
DEEP = "[" * 100_000 + "]" * 100_000


def variants(value: Any, raw: str) -> Iterator[str]:
    """JSON texts of the value, each with one part of it in raw text."""
    yield raw
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, part in items:
        for variant in variants(part, raw):
            text = json.dumps(value | {key: "@"} if isinstance(value, dict) else [*value[:key], "@", *value[key + 1 :]])
            yield text.replace('"@"', variant)


@pytest.mark.parametrize("path", BODIES)
def test_whatever_a_field_holds_the_client_is_told_and_the_server_goes_on(url, path):
    with httpx.Client(headers={"content-type": "application/json"}, timeout=60) as client:
        for number, raw in enumerate(RAW):
            # Every second part of the body, in turn.
            for body in [*variants(BODIES[path], raw)][number % 2 :: 2]:
                answer = client.post(url + path, content=body.encode())
                assert answer.status_code in (200, 400, 404), (answer.text, body[:400])
                assert answer.status_code == 200 or answer.json()["error"]["message"]
        assert client.get(f"{url}/health").status_code == 200
    assert ask(url, max_tokens=1).status_code == 200


@pytest.mark.parametrize("path", BODIES)
def test_json_that_is_nested_deep_is_refused(url, path):
    for body in (DEEP, f'{{"model": {DEEP}}}', f'{{"tools": {DEEP}}}', '{"a":' * 100_000):
        assert post(url, path, body).status_code == 400
    call = {**CALL, "function": {"name": "f", "arguments": DEEP}}
    asked = {**REQUEST, "messages": [*CONVERSATION, {"role": "assistant", "tool_calls": [call]}]}
    assert post(url, f"{CHAT}/render", json.dumps(asked)).status_code == 400


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_tagged_calls, "<tool_call>" + "[" * 100_000 + "</tool_call>"),
        (parse_tagged_calls, "<tool_call>" * 200_000),
        (parse_bare_calls, "[" * 100_000),
    ],
)
def test_what_is_no_call_stays_text(parse, text):
    assert parse(text, []) == (text, [])


def test_a_temperature_next_to_0_is_greedy():
    logits = torch.tensor([[1.0, 3.0, 2.0]] * 2)
    drawn = {"top_p": np.ones(2), "uniform": np.array([0.999, 0.5])}
    assert sample(logits, temperature=np.array([1e-320, 0.0]), **drawn)[0] == [1, 1]


class Chat:
    """Renders once it is allowed to, and fails where nothing else goes on meanwhile."""

    def __init__(self) -> None:
        self.allowed = threading.Event()

    def prompt_ids(self, *_: Any, **__: Any) -> list[int]:
        assert self.allowed.wait(10)
        return [1]


class Engine:
    gone = asyncio.Event()


async def answered(app: server.App, method: str, path: str, *body: bytes) -> int:
    """The status of the answer to a request whose body is sent up to the last part that is given."""
    parts = list(body)

    async def receive() -> dict:
        if not parts:
            await asyncio.sleep(3600)
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": part != b"}"}

    statuses: list[int] = []

    async def send(message: dict) -> None:
        statuses.append(message.get("status", 0))

    headers = [HOST, (b"content-type", b"application/json")]
    await app({"type": "http", "path": path, "method": method, "headers": headers}, receive, send)
    return statuses[0]


def test_while_a_conversation_is_rendered_others_are_answered():
    chat = Chat()

    async def both() -> tuple[int, int]:
        app = server.App(Engine(), chat, Ready(256, "b@0", 100), None)
        long = {"role": "user", "content": "red " * server.LONG_BODY_BYTES}
        body = json.dumps({"model": "base", "messages": [long]})
        rendering = asyncio.ensure_future(answered(app, "POST", f"{CHAT}/render", body[:-1].encode(), b"}"))
        await asyncio.sleep(0.05)
        health = await answered(app, "GET", "/health", b"}")
        chat.allowed.set()
        return health, await rendering

    assert asyncio.run(both()) == (200, 200)


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch):
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)

    async def started() -> int:
        return await answered(server.App(Engine(), Chat(), Ready(256, "b@0", 100), None), "POST", CHAT, b"{")

    assert asyncio.run(started()) == 408
