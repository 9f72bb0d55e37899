"""The policy server as its clients see it: a real process, real HTTP (docs/policy-server.md)."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.merge.cat import merge
from trainer.merge.job import MergeJob, Part
from trainer.serve.tool_calls import coerce, parse
from trainer.tests.conftest import SPECIAL, save_adapter
from trainer.tests.serving import running_server, start_server

EOS = SPECIAL.index("<|end|>")
CONVERSATION = [
    {"role": "system", "content": "you are a help desk . look the account up first ."},
    {"role": "user", "content": "cancel the red lamp i42 please ."},
]


@pytest.fixture(scope="module")
def adapters(tiny_model_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served-adapters")
    return [str(save_adapter(folder / f"a{n}", tiny_model_dir, n, ["q_proj", "w1", "in_proj"])) for n in range(2)]


@pytest.fixture(scope="module")
def url(tiny_model_dir):
    with running_server(tiny_model_dir, "--max-batch", "16") as (_, url):
        yield url


def ask(url: str, **fields):
    body = {"model": "base", "messages": CONVERSATION, "seed": 1, "logprobs": True, "return_token_ids": True} | fields
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)


def metrics(url: str) -> dict[str, float]:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def test_a_completion_holds_the_sampled_ids_and_the_policys_logprobs(url, tiny_model_dir, shop_tools):
    response = ask(url, tools=shop_tools, max_tokens=7, temperature=0.7, top_p=0.9)
    assert response.status_code == 200
    answer = response.json()
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


def score(url: str, **fields):
    return httpx.post(f"{url}/v1/completions", json={"model": "base", "prompt_logprobs": 0} | fields, timeout=60)


def test_given_ids_are_scored_with_and_without_an_adapter(url, adapters, tiny_model_dir):
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_dir)
    text = tokenizer.apply_chat_template(CONVERSATION, add_generation_prompt=True, tokenize=False)
    # An end of turn in the middle ends nothing here.
    ids = [*tokenizer(text, add_special_tokens=False).input_ids, EOS, 5, 6]
    choice = score(url, prompt=ids).json()["choices"][0]
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tiny_model_dir)(torch.tensor([ids])).logits[0].log_softmax(-1)
    first, *others = choice["prompt_logprobs"]
    assert first is None and [list(one) for one in others] == [[str(token)] for token in ids[1:]]
    found = [one[str(token)]["logprob"] for one, token in zip(others, ids[1:], strict=True)]
    assert found == pytest.approx([logits[n, token].item() for n, token in enumerate(ids[1:])], abs=1e-4)
    httpx.post(f"{url}/v1/load_lora_adapter", json={"lora_name": "scoring", "lora_path": adapters[0]})
    other = score(url, prompt=ids, model="scoring").json()["choices"][0]["prompt_logprobs"]
    assert other[1:] != others
    httpx.post(f"{url}/v1/unload_lora_adapter", json={"lora_name": "scoring"})


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"prompt": [1] * 300}, 400, "prompt: 300 ids, the context holds 256"),
        ({"prompt": [1, 99_999]}, 400, "prompt: id 99999, the model knows ids below"),
        ({"prompt": [1]}, 400, "prompt"),
        ({"prompt": [1, 2], "model": "nobody"}, 404, "nobody"),
        ({"prompt": [1, 2], "prompt_logprobs": 3}, 400, "prompt_logprobs"),
    ],
)
def test_what_can_not_be_scored_is_refused(url, fields, status, says):
    response = score(url, **fields)
    assert response.status_code == status and says in response.json()["error"]["message"]


def test_what_was_not_asked_for_is_left_out(url):
    answer = ask(url, logprobs=False, return_token_ids=False, max_tokens=2).json()
    assert "prompt_token_ids" not in answer and "token_ids" not in answer["choices"][0]
    assert answer["choices"][0]["logprobs"] is None


def test_without_a_limit_a_turn_ends_at_its_end_token_or_with_the_context(url):
    answers = [ask(url, seed=seed).json() for seed in range(6)]
    for answer in answers:
        ids = answer["choices"][0]["token_ids"]
        assert (ids[-1] == EOS) != (answer["usage"]["total_tokens"] == 256)
        assert answer["choices"][0]["finish_reason"] == ("length" if ids[-1] != EOS else "stop")


def test_the_next_turn_continues_the_ids_and_comes_from_the_cache(url):
    first = next(
        a for s in range(100) if (a := ask(url, seed=s, max_tokens=40).json())["choices"][0]["finish_reason"] == "stop"
    )
    choice = first["choices"][0]
    said = {"role": "assistant", "content": choice["message"]["content"]}
    second = ask(
        url, messages=[*CONVERSATION, said, {"role": "user", "content": "thanks . bye ."}], max_tokens=3
    ).json()
    seen = first["prompt_token_ids"] + choice["token_ids"]
    assert second["prompt_token_ids"][: len(seen)] == seen
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == len(seen) - 1


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


def test_adapters_load_serve_and_unload_by_name(url, adapters, tmp_path):
    post = lambda path, **body: httpx.post(f"{url}/v1/{path}", json=body)  # noqa: E731
    greedy = {"temperature": 0, "max_tokens": 12}
    base = ask(url, **greedy).json()["choices"][0]["logprobs"]
    assert ask(url, model="one").status_code == 404
    for _ in range(2):
        assert post("load_lora_adapter", lora_name="one", lora_path=adapters[0]).status_code == 200
    assert post("load_lora_adapter", lora_name="two", lora_path=adapters[1]).status_code == 200
    other = post("load_lora_adapter", lora_name="one", lora_path=adapters[1])
    assert other.status_code == 400 and other.json()["error"]["param"] == "lora_name"
    for name, weight in (("mix", 0.5), ("none", 0.0)):
        parts = [Part(path=path, weight=weight) for path in adapters]
        merge(MergeJob(adapters=parts, output_dir=str(tmp_path / name)))
        assert post("load_lora_adapter", lora_name=name, lora_path=str(tmp_path / name)).status_code == 200
    cards = {card["id"]: card["parent"] for card in httpx.get(f"{url}/v1/models").json()["data"]}
    assert cards == {"base": None, "one": "base", "two": "base", "mix": "base", "none": "base"}

    names = ["base", "one", "two", "mix", "none"]
    with ThreadPoolExecutor(5) as pool:
        answers = dict(zip(names, pool.map(lambda name: ask(url, model=name, **greedy).json(), names), strict=True))
    found = {name: [e["logprob"] for e in a["choices"][0]["logprobs"]["content"]] for name, a in answers.items()}
    assert {name: a["model"] for name, a in answers.items()} == {name: name for name in names}
    assert found["none"] == pytest.approx(found["base"], abs=1e-4)
    assert found["base"] == pytest.approx([e["logprob"] for e in base["content"]], abs=1e-4)
    assert len({tuple(found[name]) for name in ("base", "one", "two", "mix")}) == 4

    for name in ("one", "two", "mix", "none"):
        assert post("unload_lora_adapter", lora_name=name).status_code == 200
    gone = post("unload_lora_adapter", lora_name="one")
    assert gone.status_code == 404 and gone.json()["error"]["type"] == "NotFoundError"
    assert metrics(url)["policy_server_adapters"] == 0


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


def test_metrics_count_requests_and_tokens(url):
    before = metrics(url)
    answers = [ask(url, max_tokens=3, temperature=0).json() for _ in range(3)]
    ask(url, model="nobody")
    after = metrics(url)
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown["policy_server_completion_tokens_total"] == sum(a["usage"]["completion_tokens"] for a in answers)
    assert grown["policy_server_prompt_tokens_total"] == 3 * answers[0]["usage"]["prompt_tokens"]
    cached = sum(a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in answers)
    assert grown["policy_server_cached_tokens_total"] == cached > 0
    assert grown['policy_server_requests_total{outcome="refused"}'] == 1
    assert grown["policy_server_steps_total"] > 0 and grown["policy_server_step_seconds_total"] > 0
    assert after["policy_server_running"] == after["policy_server_waiting"] == 0


def test_a_client_that_leaves_frees_its_row(url):
    body = json.dumps({"model": "base", "messages": CONVERSATION, "seed": 5}).encode()
    host, port = url.removeprefix("http://").split(":")
    before = metrics(url).get('policy_server_requests_total{outcome="cancelled"}', 0)
    for _ in range(5):
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
    for _ in range(200):
        now = metrics(url)
        if now["policy_server_running"] == now["policy_server_waiting"] == 0:
            break
        time.sleep(0.05)
    assert now["policy_server_running"] == 0
    assert now.get('policy_server_requests_total{outcome="cancelled"}', 0) > before


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, "stdin"])
def test_a_server_that_is_stopped_answers_503_and_ends_with_0(tiny_model_dir, how):
    with running_server(tiny_model_dir, "--max-batch", "1") as (process, url):
        # One row and many long requests: most of them are still waiting when the server is stopped.
        with ThreadPoolExecutor(40) as pool:
            answers = [pool.submit(ask, url, seed=n, messages=CONVERSATION) for n in range(40)]
            while not metrics(url)["policy_server_waiting"]:
                pass
            process.stdin.close() if how == "stdin" else process.send_signal(how)
            codes = {answer.result().status_code if not answer.exception() else "refused" for answer in answers}
        assert process.wait(20) == 0
    assert 503 in codes and codes <= {200, 503, "refused"}


def test_a_server_that_is_stopped_while_it_loads_ends_with_0(tiny_model_dir):
    process = start_server("--model", str(tiny_model_dir), "--port", "0")
    while not children_of(process):
        time.sleep(0.01)
    worker = children_of(process)[0]
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and out == "" and "Traceback" not in err
    assert subprocess.run(["kill", "-0", worker], capture_output=True).returncode != 0


def children_of(process: subprocess.Popen[str]) -> list[str]:
    return subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()


def test_a_generation_process_that_dies_is_told_and_ends_the_server(tiny_model_dir):
    with running_server(tiny_model_dir) as (process, url):
        children = children_of(process)
        assert len(children) == 1 and httpx.get(f"{url}/health").status_code == 200
        subprocess.run(["kill", "-9", children[0]], check=True)
        assert process.wait(20) == 1
        assert "generation process has ended" in process.stderr.read()


def test_stdout_carries_the_listening_line_alone(tiny_model_dir):
    with running_server(tiny_model_dir) as (process, url):
        assert ask(url, max_tokens=2).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""


def test_what_keeps_a_server_from_starting_is_one_line(tiny_model_dir, tmp_path):
    def failure(*options: str) -> str:
        process = start_server(*options)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 1 and out == "" and "Traceback" not in err
        return err.strip().splitlines()[-1]

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = failure("--model", str(tiny_model_dir), "--port", port)
        assert f"--port {port}" in line and "in use" in line
    line = failure("--model", str(tmp_path / "none"))
    assert "make base-model" in line and str(tmp_path / "none") in line
    (tmp_path / "config.json").write_text('{"model_type": "lfm2"}')
    assert str(tmp_path) in failure("--model", str(tmp_path), "--port", "0")


def test_two_servers_agree_on_a_seed(tiny_model_dir, url):
    with running_server(tiny_model_dir, "--prefix-cache-mb", "0", "--model-name", "tiny") as (_, other):
        for seed in range(3):
            ids = ask(other, seed=seed, model="tiny", max_tokens=20).json()["choices"][0]["token_ids"]
            assert ids == ask(url, seed=seed, max_tokens=20).json()["choices"][0]["token_ids"]


def test_adapters_of_a_folder_are_loaded_at_the_start(tiny_model_dir, tmp_path):
    save_adapter(tmp_path / "refunds", tiny_model_dir, 1, ["q_proj"])
    (tmp_path / "notes").mkdir()
    with running_server(tiny_model_dir, "--adapters-dir", str(tmp_path)) as (_, url):
        assert [card["id"] for card in httpx.get(f"{url}/v1/models").json()["data"]] == ["base", "refunds"]


def test_loading_goes_on_beside_generation(url, adapters):
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


TOOLS = [
    {
        "function": {
            "name": "refund",
            "parameters": {
                "properties": {
                    "item": {"type": "string"},
                    "count": {"type": "integer"},
                    "amount": {"type": "number"},
                    "opened": {"type": "boolean"},
                    "code": {"type": ["integer", "null"]},
                }
            },
        }
    }
]


def test_calls_are_parsed_and_their_arguments_get_the_schemas_types():
    text = '<|call|> refund(item=" red lamp ", count="3", amount="2.5", opened="true", code="7") <|call|>other()'
    content, calls = parse(text, TOOLS)
    assert content == ""
    assert [call["id"] for call in calls] == ["call_0", "call_1"]
    assert json.loads(calls[0]["function"]["arguments"]) == {
        "item": "red lamp",
        "count": 3,
        "amount": 2.5,
        "opened": True,
        "code": 7,
    }
    assert calls[1]["function"] == {"name": "other", "arguments": "{}"}
    assert parse('one moment <|call|>refund(unknown="5")', TOOLS)[0] == "one moment"


@pytest.mark.parametrize(
    "text",
    [
        "no call at all",
        "<|call|>",
        '<|call|>refund(item="x"',
        "<|call|>refund(item=x)",
        '<|call|>refund(item="x" count="1")',
        '<|call|>refund(item="x",)',
        '<|call|>refund(item="x", item="y")',
        '<|call|>refund(item="x") and more',
        '<|call|>refund(item="x")<|call|>refund(item="x',
        '<|call|>(item="x")',
    ],
)
def test_what_does_not_parse_stays_content(text):
    assert parse(text, TOOLS) == (text, [])


@pytest.mark.parametrize(
    ("value", "schema", "typed"),
    [
        ("12", {"type": "integer"}, 12),
        ("-12", {"type": "integer"}, -12),
        ("1.5", {"type": "integer"}, "1.5"),
        ("x", {"type": "integer"}, "x"),
        ("30", {"type": "number"}, 30),
        ("inf", {"type": "number"}, "inf"),
        ("False", {"type": "boolean"}, False),
        ("yes", {"type": "boolean"}, "yes"),
        ("12", {"type": "string"}, "12"),
        ("12", {}, "12"),
        ("12", True, "12"),
    ],
)
def test_coercion(value, schema, typed):
    coerced = coerce(value, schema)
    assert coerced == typed and type(coerced) is type(typed)
