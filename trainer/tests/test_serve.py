"""The policy server as its clients see it: a real process, real HTTP (docs/policy-server.md)."""

import threading

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.tests.serving import CONVERSATION, ask


def test_a_completion_holds_the_sampled_ids_and_the_policys_logprobs(url, tiny_model_dir, shop_tools):
    answer = ask(url, tools=shop_tools, max_tokens=7, temperature=0.7, top_p=0.9).json()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_dir)
    text = tokenizer.apply_chat_template(CONVERSATION, tools=shop_tools, add_generation_prompt=True, tokenize=False)
    prompt = tokenizer(text, add_special_tokens=False).input_ids
    assert answer["prompt_token_ids"] == prompt
    choice = answer["choices"][0]
    ids, content = choice["token_ids"], choice["logprobs"]["content"]
    assert [entry["token"] for entry in content] == tokenizer.convert_ids_to_tokens(ids)
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tiny_model_dir)(torch.tensor([prompt + ids])).logits[0]
    expected = [logits.log_softmax(-1)[len(prompt) - 1 + n, token].item() for n, token in enumerate(ids)]
    assert [entry["logprob"] for entry in content] == pytest.approx(expected, abs=1e-4)
    assert answer["usage"]["prompt_tokens"] == len(prompt)
    assert answer["usage"]["completion_tokens"] == len(ids)
    assert answer["model"] == "base" and choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] in ("stop", "tool_calls", "length")
    plain = ask(url, logprobs=False, return_token_ids=False, max_tokens=2).json()
    assert "prompt_token_ids" not in plain and "token_ids" not in plain["choices"][0]
    assert plain["choices"][0]["logprobs"] is None


@pytest.mark.parametrize(
    ("ids", "problem"),
    [([], "token_ids"), ([-1], "token_ids.0"), ([10**6], "no id 1000000"), ([1] * 256, "256 tokens")],
)
def test_ids_that_can_not_be_continued_are_refused(url, ids, problem):
    answer = httpx.post(f"{url}/inference/v1/generate", json={"token_ids": ids, "sampling_params": {}})
    assert answer.status_code == 400 and problem in answer.json()["error"]["message"]
    assert httpx.get(f"{url}/health").status_code == 200


def test_a_conversation_with_calls_renders_to_the_ids_of_the_calls(url, shop_tools, tiny_model_dir):
    call = {"name": "cancel_item", "arguments": '{"item": "red lamp", "id": "i42"}'}
    messages = [
        *CONVERSATION,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "done"},
    ]
    answer = ask(url, messages=messages, tools=shop_tools, max_tokens=1)
    assert answer.status_code == 200, answer.text
    tokens = AutoTokenizer.from_pretrained(tiny_model_dir).convert_ids_to_tokens(answer.json()["prompt_token_ids"])
    begin = tokens.index("<|call|>")
    written = ["<|call|>", 'cancel_item(item="', "red", "lamp", '", id="', "i42", '")', "<|end|>", "<|tool|>", "done"]
    assert tokens[begin : begin + len(written)] == written


def test_loading_runs_beside_generation(url, adapters):
    stop, failures = threading.Event(), []

    def load() -> None:
        while not stop.is_set():
            httpx.post(f"{url}/v1/load_lora_adapter", json={"lora_name": "again", "lora_path": adapters[0]})
            gone = httpx.post(f"{url}/v1/unload_lora_adapter", json={"lora_name": "again"})
            if gone.status_code != 200:
                failures.append(gone.text)

    loader = threading.Thread(target=load)
    loader.start()
    codes = [ask(url, model="again", seed=n, max_tokens=4).status_code for n in range(20)]
    stop.set()
    loader.join()
    assert failures == [] and set(codes) <= {200, 404}


JSON = {"content-type": "application/json"}
BAD_CALL = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "["}}]}


@pytest.mark.parametrize(
    ("fields", "status", "param", "says"),
    [
        ({"model": "nobody"}, 404, "model", "there are: base"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "messages.0.role", "robot"),
        ({"messages": [{"role": "user", "content": 4}]}, 400, "messages.0.content", "string"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, 400, "messages.0.content", "parts"),
        *(
            ({"chat_template_kwargs": {name: 1}}, 400, "chat_template_kwargs", f"{name} can't be set here")
            for name in ("chat_template", "messages", "tools", "tokenize", "return_dict", "sanitize_control_tokens")
        ),
        ({"temperature": -1}, 400, "temperature", "-1"),
        ({"top_p": 0}, 400, "top_p", "greater than 0"),
        ({"top_k": 20}, 400, "top_k", "20"),
        ({"max_tokens": 0}, 400, "max_tokens", "greater than or equal to 1"),
        ({"stream": True}, 400, "stream", "true"),
        ({"stop": ["x"]}, 400, "stop", 'stop ["x"]: this policy server can\'t do it; leave it out'),
        ({"tool_choice": "required"}, 400, "tool_choice", "required"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "json_object"),
        ({"logit_bias": {"5": 1}}, 400, "logit_bias", "5"),
        ({"tools": [{"type": "function"}]}, 400, "tools.0.function", "required"),
        ({"messages": [{"role": "user", "content": "red " * 300}]}, 400, "messages", "the context holds 256"),
        ({"messages": [BAD_CALL]}, 400, "messages.0.tool_calls.0.function.arguments", "JSON object"),
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
    named |= {"n": 1, "stop": [], "response_format": {"type": "text"}, "logit_bias": {}, "modalities": ["text"]}
    choices = [ask(url, seed=4, temperature=1, **fields).json()["choices"][0] for fields in ({}, named)]
    assert choices[0] == choices[1]


def test_content_parts_are_one_text(url):
    parts = [{"type": "text", "text": "cancel the red "}, {"type": "text", "text": "lamp i42 please ."}]
    answer = ask(url, messages=[CONVERSATION[0], {"role": "user", "content": parts}], max_tokens=1).json()
    assert answer["prompt_token_ids"] == ask(url, max_tokens=1).json()["prompt_token_ids"]


def test_wrong_paths_methods_and_bodies_are_refused(url):
    assert httpx.get(f"{url}/v1/none").status_code == 404
    assert httpx.get(f"{url}/v1/chat/completions").status_code == 404
    for body in (b"", b"{", b"[1]"):
        response = httpx.post(f"{url}/v1/chat/completions", content=body, headers=JSON)
        assert response.status_code == 400 and "JSON object" in response.json()["error"]["message"]
    assert httpx.post(f"{url}/v1/chat/completions", content=b" " * (9 << 20), headers=JSON).status_code == 413
    assert httpx.get(f"{url}/health").status_code == 200
