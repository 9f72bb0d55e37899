"""What the policy server makes of a request: texts in parts, refusals (docs/policy-server.md)."""

from __future__ import annotations

import httpx
import pytest

from trainer.tests.serving import CONVERSATION, ask


@pytest.mark.parametrize(
    ("fields", "status", "param", "says"),
    [
        ({"model": "nobody"}, 404, "model", "there are: base"),
        ({"model": None}, 400, "model", "null"),
        ({"messages": []}, 400, "messages", "at least 1"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "messages.0.role", "robot"),
        ({"messages": [{"role": "user", "content": 4}]}, 400, "messages.0.content", "string"),
        ({"temperature": -1}, 400, "temperature", "-1"),
        ({"temperature": "warm"}, 400, "temperature", "warm"),
        ({"top_p": 0}, 400, "top_p", "greater than 0"),
        ({"top_k": 20}, 400, "top_k", "20"),
        ({"min_p": 0.1}, 400, "min_p", "0.1"),
        ({"repetition_penalty": 1.05}, 400, "repetition_penalty", "1.05"),
        ({"presence_penalty": 0.5}, 400, "presence_penalty", "0.5"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty", "0.5"),
        ({"max_tokens": 0}, 400, "max_tokens", "greater than or equal to 1"),
        ({"seed": 1.5}, 400, "seed", "1.5"),
        ({"n": 2}, 400, "n", "2"),
        ({"stream": True}, 400, "stream", "true"),
        ({"stop": ["x"]}, 400, "stop", "x"),
        ({"tools": [{"type": "function"}]}, 400, "tools.0.function", "required"),
        ({"messages": [{"role": "user", "content": "red " * 300}]}, 400, "messages", "the context holds 256"),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "["}}]}
                ]
            },
            400,
            "messages.0.tool_calls.0.function.arguments",
            "JSON object",
        ),
    ],
)
def test_bad_requests_are_refused_in_openais_shape(url, fields, status, param, says):
    response = ask(url, **fields)
    error = response.json()["error"]
    assert response.status_code == status
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param and says in error["message"] and "\n" not in error["message"]
    assert error["type"] == ("NotFoundError" if status == 404 else "BadRequestError")
    assert (error["code"] == "context_length_exceeded") == ("context holds" in error["message"])


def test_the_models_own_distribution_may_be_asked_for_by_name(url):
    named = {"top_k": -1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0.0}
    choices = [ask(url, seed=4, temperature=1, **fields).json()["choices"][0] for fields in ({}, named)]
    assert choices[0] == choices[1]


def test_content_parts_are_one_text(url):
    parts = [{"type": "text", "text": "cancel the red "}, {"type": "text", "text": "lamp i42 please ."}]
    answer = ask(url, messages=[CONVERSATION[0], {"role": "user", "content": parts}], max_tokens=1).json()
    assert answer["prompt_token_ids"] == ask(url, max_tokens=1).json()["prompt_token_ids"]


def test_wrong_paths_methods_and_bodies_are_refused(url):
    assert httpx.get(f"{url}/v1/none").status_code == 404
    assert httpx.get(f"{url}/v1/chat/completions").status_code == 405
    for body in (b"", b"{", b"[1]"):
        response = httpx.post(f"{url}/v1/chat/completions", content=body)
        assert response.status_code == 400 and "JSON object" in response.json()["error"]["message"]
    assert httpx.post(f"{url}/v1/chat/completions", content=b" " * (9 << 20)).status_code == 413
    assert httpx.get(f"{url}/health").status_code == 200
