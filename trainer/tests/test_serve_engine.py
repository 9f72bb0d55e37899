"""Generation equals the plain transformers (and PEFT) forward, however rows join, leave, resume and mix adapters."""

import json
import random
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel

from trainer.serve.messages import GenerationRequest, Outcome, RequestError
from trainer.serve.packed import ModelRunner, attend
from trainer.tests.conftest import save_tiny_model
from trainer.tests.serving import EOS, assert_logprobs, generate, running_engine, words
from trainer.train.model import load_base


@pytest.mark.parametrize("chunk", [2048, 7])
def test_rows_of_all_models_in_one_batch_equal_rows_alone(setting, chunk, monkeypatch):
    model, paths, plain = setting
    monkeypatch.setattr("trainer.serve.batch.PREFILL_TOKENS", chunk)
    rng = random.Random(3)
    system = [*words(0, 20), EOS]
    requests = [
        GenerationRequest(
            prompt=[*(system if n % 2 else []), *words(n % 9, rng.randint(1, 120))],
            model=("base", "one", "two")[n % 3],
            max_tokens=rng.randint(1, 25),
            seed=n,
        )
        for n in range(40)
    ]
    with running_engine(model, paths) as engine:
        outcomes = generate(engine, requests)  # 40 on 8 rows: most join a running batch
    for request, outcome in zip(requests, outcomes, strict=True):
        assert_logprobs(plain[request.model], request, outcome)
        assert outcome.finish_reason == ("stop" if outcome.token_ids[-1] == EOS else "length")
        assert EOS not in outcome.token_ids[:-1]
        assert len(outcome.token_ids) <= request.max_tokens


def test_seed_decides_the_sample_whatever_else_runs(tiny_model_dir):
    request = GenerationRequest(words(5, 12), "base", 20, seed=11)
    with running_engine(tiny_model_dir) as engine:
        alone = generate(engine, [request])[0]
        others = [GenerationRequest(words(n, 10 + n), "base", 15, seed=n) for n in range(12)]
        among = generate(engine, [*others, request, *others])[12]
        unlike = generate(engine, [GenerationRequest(request.prompt, "base", 20, seed=12)])[0]
        unseeded = [o.token_ids for o in generate(engine, [GenerationRequest(request.prompt, "base", 20)] * 2)]
    assert alone.token_ids == among.token_ids
    assert alone.token_ids != unlike.token_ids
    assert unseeded[0] != unseeded[1]


def test_greedy_takes_the_most_likely_token_and_the_likeliest_are_those_of_the_plain_model(setting):
    model, _, plain = setting
    asked = GenerationRequest(words(8, 9), "base", 12, temperature=0, likeliest=5)
    with running_engine(model) as engine:
        outcome, other = generate(engine, [asked, GenerationRequest(words(4, 9), "base", 2, seed=1)])
    assert other.likeliest == ()
    with torch.no_grad():
        logits = plain["base"](torch.tensor([asked.prompt + outcome.token_ids])).logits[0, len(asked.prompt) - 1 : -1]
    expected = logits.log_softmax(-1).topk(5)
    assert outcome.token_ids == expected.indices[:, 0].tolist()
    for likeliest, indices, values in zip(outcome.likeliest, expected.indices, expected.values, strict=True):
        assert [token for token, _ in likeliest] == indices.tolist()
        np.testing.assert_allclose([p for _, p in likeliest], values.tolist(), atol=1e-4)


@pytest.mark.parametrize("name", ["base", "one"])
def test_server_and_trainer_agree_in_bfloat16(tiny_model_dir, adapters, name, request):
    """Both convert the linear layers; with whole models in bfloat16 the difference is several times larger."""
    before = torch.backends.mkldnn.matmul.fp32_precision  # a setting of the process
    request.addfinalizer(lambda: setattr(torch.backends.mkldnn.matmul, "fp32_precision", before))
    with running_engine(tiny_model_dir, {"one": Path(adapters[0])}, dtype="bfloat16") as engine:
        requests = [GenerationRequest(list(range(10, 30 + n)), name, 24, seed=n) for n in range(3)]
        outcomes = generate(engine, requests)
    model = load_base(str(tiny_model_dir), "bfloat16")
    if name != "base":
        model = PeftModel.from_pretrained(model, adapters[0])
    for asked, outcome in zip(requests, outcomes, strict=True):
        ids = torch.tensor([[*asked.prompt, *outcome.token_ids]])
        with torch.no_grad():
            logs = model(input_ids=ids).logits[0, len(asked.prompt) - 1 : -1].log_softmax(-1)
        own = logs.gather(1, torch.tensor(outcome.token_ids)[:, None])[:, 0]
        assert (own - torch.tensor(outcome.logprobs)).abs().mean() < 0.03


def test_rows_wait_where_the_state_of_all_would_be_too_large(tiny_model_dir, monkeypatch):
    requests = [GenerationRequest(words(n, 10), "base", 20, seed=n) for n in range(3)]
    with running_engine(tiny_model_dir) as engine:
        alone = [generate(engine, [request])[0].token_ids for request in requests]
    monkeypatch.setattr("trainer.serve.batch.STATE_BYTES", 1)
    forward, rows = ModelRunner.forward, set()
    monkeypatch.setattr(ModelRunner, "forward", lambda self, s, a: rows.add(len(s)) or forward(self, s, a))
    with running_engine(tiny_model_dir) as engine:
        assert [outcome.token_ids for outcome in generate(engine, requests)] == alone
        assert rows == {1}


def test_a_cancelled_request_leaves_the_batch(tiny_model_dir):
    results: list[Outcome | RequestError] = []
    with running_engine(tiny_model_dir, max_batch=1) as engine:
        running = engine.submit(GenerationRequest(words(0, 10), "base", 240, seed=3), results.append)
        waiting = engine.submit(GenerationRequest(words(1, 10), "base", 240, seed=3), results.append)
        running.cancelled = waiting.cancelled = True
        assert generate(engine, [GenerationRequest(words(2, 10), "base", 1)])[0].finish_reason
        assert engine._batch.requests == 0
    assert len(results) == 2


def test_a_failed_step_fails_its_requests_and_nothing_else(tiny_model_dir, monkeypatch):
    with running_engine(tiny_model_dir) as engine:
        request = GenerationRequest(words(0, 10), "base", 3, seed=1)
        with monkeypatch.context() as broken:
            broken.setattr("trainer.serve.batch.sample", lambda *_, **__: 1 / 0)
            with pytest.raises(RequestError, match="ZeroDivisionError"):
                generate(engine, [request])
        assert len(generate(engine, [request])[0].token_ids) > 0


def test_a_model_that_the_packed_forward_gets_wrong_is_refused(tiny_llama_dir, monkeypatch):
    monkeypatch.setattr("trainer.serve.packed.attend", lambda *args, **kwargs: (2 * attend(*args, **kwargs)[0], None))
    said = "llama cannot run packed .its log-probs differ from the plain forward by .* serve it with vLLM"
    with pytest.raises(ValueError, match=said), running_engine(tiny_llama_dir):
        pass


@pytest.mark.parametrize(
    ("kind", "window", "served"),
    [
        ("mistral", {"sliding_window": 255}, False),
        ("mistral", {"sliding_window": 256}, True),
        ("mistral", {"sliding_window": None}, True),
        ("qwen2", {"sliding_window": 200, "use_sliding_window": False}, True),
        ("qwen2", {"sliding_window": 200, "use_sliding_window": True, "max_window_layers": 4}, True),
        ("qwen2", {"sliding_window": 200, "use_sliding_window": True, "max_window_layers": 3}, False),
    ],
)
def test_a_window_that_is_shorter_than_the_context_is_refused(tmp_path, kind, window, served):
    folder = save_tiny_model(tmp_path / "model", kind="llama")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": kind, "architectures": [f"{kind.capitalize()}ForCausalLM"], **window}
    (folder / "config.json").write_text(json.dumps(config))
    said = rf"{kind} cannot run packed .its layers attend to the last \d+ tokens .sliding_window.* serve it with vLLM"
    with nullcontext() if served else pytest.raises(ValueError, match=said):
        ModelRunner(folder, slots=2)
