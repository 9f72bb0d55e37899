"""Hostile and malformed requests to the policy server: each is answered with 4xx, and the server keeps answering."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from trainer.serve import server
from trainer.serve.calls import calls_shown_in
from trainer.serve.messages import Ready
from trainer.tests.serving import CONVERSATION, ask

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
    # Requests that a browser sends without a preflight, then requests of a page that has rebound its name.
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert post(url, CHAT, harmless, **{"content-type": kind}).status_code == 415
    for host in ("evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        for path in ("/health", "/v1/models"):
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
def test_any_field_value_gets_an_answer_and_the_server_keeps_running(url, path):
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
    "text",
    [
        "<tool_call>" + "[" * 100_000 + "</tool_call>",
        "<tool_call>" * 200_000,
        "[" * 100_000,
        "f(a=" + "[" * 5_000,
        "f(a=" + "-" * 5_000 + "1)",
        "call:f{" + "a:{" * 100_000 + "}",
        "```" * 200_000,
    ],
)
def test_text_that_is_no_call_stays_text(text):
    assert calls_shown_in("<tool_call>")(text, []) == (text, [])


class Chat:
    def prompt_ids(self, *_: Any, **__: Any) -> list[int]:
        return [1]


class Engine:
    """Generates until it is cancelled."""

    cancelled = False

    async def generate(self, _: Any) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            self.cancelled = True


def test_a_client_that_leaves_ends_its_generation():
    engine, parts = Engine(), [json.dumps({"model": "base", "messages": CONVERSATION}).encode()]

    async def receive() -> dict:
        return {"type": "http.request", "body": parts.pop()} if parts else {"type": "http.disconnect"}

    headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")]
    app = server.App(engine, Chat(), Ready(256, "b@0", 100), None)
    asyncio.run(app({"type": "http", "path": CHAT, "method": "POST", "headers": headers}, receive, None))
    assert engine.cancelled
