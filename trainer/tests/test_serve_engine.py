"""Generation equals the plain transformers (and PEFT) forward, however rows join, leave, resume and mix adapters."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from trainer.merge.cat import merge
from trainer.merge.job import MergeJob, Part
from trainer.serve.adapters import AdapterRegistry
from trainer.serve.errors import BadRequest, NotFound, RequestError, Unavailable
from trainer.serve.generation import GenerationRequest, Outcome
from trainer.serve.lora_mix import LoraMix
from trainer.serve.prefix_cache import PrefixCache, key_of
from trainer.serve.sampling import sample, uniforms
from trainer.serve.state_pool import Snapshot
from trainer.tests.conftest import SPECIAL, save_adapter, save_tiny_model
from trainer.tests.serving import generate, running_engine

EOS = SPECIAL.index("<|end|>")
TARGETS = {
    "lfm2": (["q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"], ["q_proj", "w2"]),
    "llama": (["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], ["v_proj"]),
}


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(EOS + 1, 60), k=count)


@pytest.fixture(scope="module", params=["lfm2", "llama"])
def setting(request, tiny_model_dir, tiny_llama_dir, tmp_path_factory):
    """A model folder and two adapters of different rank and targets for it, with PEFT's own view of each."""
    model = tiny_model_dir if request.param == "lfm2" else tiny_llama_dir
    folder = tmp_path_factory.mktemp("adapters")
    all_modules, some_modules = TARGETS[request.param]
    paths = {
        "one": save_adapter(folder / "one", model, 1, all_modules, rank=4),
        "two": save_adapter(folder / "two", model, 2, some_modules, rank=8, alpha=4),
    }
    plain = {"base": AutoModelForCausalLM.from_pretrained(model).eval()}
    for name, path in paths.items():
        plain[name] = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), path).eval()
    return model, paths, plain


def assert_logprobs(plain: torch.nn.Module, request: GenerationRequest, outcome: Outcome) -> None:
    """The outcome's log-probs are those of a forward over this row alone."""
    ids = torch.tensor([request.prompt + outcome.token_ids])
    with torch.no_grad():
        logprobs = plain(ids).logits[0].log_softmax(-1)
    begin = len(request.prompt) - 1
    expected = [logprobs[begin + n, token].item() for n, token in enumerate(outcome.token_ids)]
    np.testing.assert_allclose(outcome.logprobs, expected, atol=1e-4)


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
    with running_engine(model) as engine:
        for name, path in paths.items():
            engine.registry.load(name, str(path))
        outcomes = generate(engine, requests)  # 40 on 8 rows: most join a running batch
        assert engine.metrics.step_rows > 3 * engine.metrics.steps
    for request, outcome in zip(requests, outcomes, strict=True):
        assert_logprobs(plain[request.model], request, outcome)
        assert outcome.finish_reason == ("stop" if outcome.token_ids[-1] == EOS else "length")
        assert EOS not in outcome.token_ids[:-1]
        assert len(outcome.token_ids) <= request.max_tokens


def test_resumed_turns_take_the_prefix_from_the_cache_and_change_nothing(setting):
    model, paths, plain = setting
    with running_engine(model) as engine, running_engine(model, prefix_cache_mb=0) as uncached:
        for one in (engine, uncached):
            one.registry.load("one", str(paths["one"]))
        prompts = [[*words(0, 30), EOS, *words(100 + n // 4, 10)] for n in range(8)]
        for turn in range(4):
            requests = [GenerationRequest(p, ("base", "one")[n // 4], 6, seed=turn) for n, p in enumerate(prompts)]
            outcomes = generate(engine, requests)
            # The sampled ids are fed back, so that both engines are asked the same.
            for request, outcome, again in zip(requests, outcomes, generate(uncached, requests), strict=True):
                assert_logprobs(plain[request.model], request, outcome)
                assert outcome.token_ids == again.token_ids
                assert again.cached_tokens == 0
                if turn:
                    assert outcome.cached_tokens == len(request.prompt) - 9, "all but the last sample and the new turn"
            prompts = [[*p, *o.token_ids, *words(200 + turn, 8)] for p, o in zip(prompts, outcomes, strict=True)]


def test_a_shared_prompt_is_computed_once(tiny_model_dir):
    prompt = [*words(0, 40), EOS, *words(1, 19)]
    other = [*words(0, 40), EOS, *words(2, 19)]
    with running_engine(tiny_model_dir, max_batch=16) as engine:
        requests = [GenerationRequest(prompt, "base", 1, seed=n) for n in range(15)]
        outcomes = generate(engine, [*requests, GenerationRequest(other, "base", 1, seed=0)])
        assert sorted(o.cached_tokens for o in outcomes) == [0, *[41], *[59] * 14]
        assert engine.metrics.step_tokens == 60 + 14 + 19


def test_a_cache_that_is_too_small_for_a_prompt_holds_nobody_back(tiny_model_dir):
    with running_engine(tiny_model_dir, prefix_cache_mb=0) as engine:
        outcomes = generate(engine, [GenerationRequest(words(0, 100), "base", 2, seed=n) for n in range(8)])
        assert [o.cached_tokens for o in outcomes] == [0] * 8
        assert engine.metrics.steps == 2


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


def test_greedy_takes_the_most_likely_token(setting):
    model, _, plain = setting
    request = GenerationRequest(words(8, 9), "base", 12, temperature=0)
    with running_engine(model) as engine:
        outcome = generate(engine, [request])[0]
    ids = torch.tensor([request.prompt + outcome.token_ids])
    with torch.no_grad():
        best = plain["base"](ids).logits[0, len(request.prompt) - 1 : -1].argmax(-1).tolist()
    assert outcome.token_ids == best


def test_samples_follow_the_distribution():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, 0.5]])
    count = 20_000
    rows = logits.expand(count, -1)
    uniform = uniforms(np.arange(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64))
    assert len(set(uniform)) == count

    def frequencies(temperature: float, top_p: float) -> np.ndarray:
        ones = np.ones(count)
        tokens, logprobs = sample(rows, temperature=temperature * ones, top_p=top_p * ones, uniform=uniform)
        policy = logits[0].log_softmax(-1)
        np.testing.assert_allclose(logprobs, policy[tokens].numpy(), atol=1e-6)
        return np.array([Counter(tokens)[i] / count for i in range(5)])

    np.testing.assert_allclose(frequencies(1.0, 1.0), logits[0].softmax(-1), atol=0.015)
    np.testing.assert_allclose(frequencies(0.5, 1.0), (logits[0] / 0.5).softmax(-1), atol=0.015)
    nucleus = logits[0].softmax(-1)  # .55 .20 .07 .03 .12: two tokens reach .7
    nucleus[[2, 3, 4]] = 0
    np.testing.assert_allclose(frequencies(1.0, 0.7), nucleus / nucleus.sum(), atol=0.015)
    assert frequencies(1.0, 0.01).tolist() == [1, 0, 0, 0, 0]


def test_a_sample_never_has_probability_zero():
    logits = torch.full((2, 6), float("-inf"))
    logits[:, 2:4] = 0.0
    edges = np.array([0.0, 1 - 2.0**-53])
    tokens, _ = sample(logits, temperature=np.ones(2), top_p=np.ones(2), uniform=edges)
    assert tokens == [2, 3]


@pytest.mark.parametrize("limit", [0, 32_000_000])
def test_a_merged_adapter_is_served_as_the_sum_of_its_parts(setting, tmp_path, monkeypatch, limit):
    model, paths, _ = setting
    monkeypatch.setattr("trainer.serve.adapters.MERGE_LIMIT", limit)
    weights = {"one": 0.7, "two": 0.3}
    parts = [Part(path=str(paths[name]), weight=weight) for name, weight in weights.items()]
    merge(MergeJob(adapters=parts, output_dir=str(tmp_path / "both")))
    plain = AutoModelForCausalLM.from_pretrained(model).eval()
    for name, weight in weights.items():
        factors = load_file(paths[name] / "adapter_model.safetensors")
        config = json.loads((paths[name] / "adapter_config.json").read_text())
        for key in factors:
            if "lora_A" in key:
                linear = plain.get_submodule(key.removeprefix("base_model.model.").removesuffix(".lora_A.weight"))
                delta = factors[key.replace("lora_A", "lora_B")] @ factors[key] * config["lora_alpha"] / config["r"]
                linear.weight.data += weight * delta
    requests = [GenerationRequest(words(n, 20), ("both", "base", "one")[n % 3], 5, seed=n) for n in range(9)]
    with running_engine(model) as engine:
        engine.registry.load("both", str(tmp_path / "both"))
        engine.registry.load("one", str(paths["one"]))
        assert (engine.registry.get("both").merged is None) == (limit == 0)
        for batch in (requests, requests[::3]):  # among others, and alone
            for request, outcome in zip(batch, generate(engine, batch), strict=True):
                if request.model == "both":
                    assert_logprobs(plain, request, outcome)


def test_without_merged_weights_an_adapter_gives_the_same(setting, monkeypatch):
    model, paths, plain = setting
    monkeypatch.setattr("trainer.serve.adapters.MERGE_LIMIT", 0)
    requests = [GenerationRequest(words(n, 20), "one", 5, seed=n) for n in range(3)]
    with running_engine(model) as engine:
        engine.registry.load("one", str(paths["one"]))
        assert engine.registry.get("one").merged is None
        for request, outcome in zip(requests, generate(engine, requests), strict=True):
            assert_logprobs(plain["one"], request, outcome)


def test_an_adapter_that_is_alone_for_a_while_is_merged_until_another_one_is_or_it_is_unloaded(setting, monkeypatch):
    model, paths, plain = setting
    monkeypatch.setattr("trainer.serve.adapters.MERGE_LIMIT", 0)
    monkeypatch.setattr("trainer.serve.lora_mix.LONE_FORWARDS", 4)
    monkeypatch.setattr("trainer.products.SMALLEST_REORDERED", 0)
    with running_engine(model) as engine:

        def told(requests: list[GenerationRequest]) -> None:
            for request, outcome in zip(requests, generate(engine, requests), strict=True):
                assert_logprobs(plain[request.model], request, outcome)

        for name in ("one", "two"):
            engine.registry.load(name, str(paths[name]))
        told([GenerationRequest(words(n, 20), "one", 2, seed=n) for n in range(3)])
        assert engine._mix._lone is None
        told([GenerationRequest(words(n, 20), "one", 12, seed=n) for n in range(3)])
        first = engine._mix._lone
        assert first is not None
        told([GenerationRequest(words(n, 20), ("one", "base", "two")[n], 6, seed=n) for n in range(3)])
        told([GenerationRequest(words(5, 20), "one", 1, seed=5)])
        assert engine._mix._lone is first  # others in between cost it nothing
        told([GenerationRequest(words(6, 20), "two", 12, seed=6)])
        assert engine._mix._lone not in (None, first)
        engine.unload("two")
        told([GenerationRequest(words(7, 20), "base", 2, seed=7)])
        assert engine._mix._lone is None


def test_a_running_request_keeps_the_adapter_that_is_unloaded_and_replaced(setting):
    model, paths, plain = setting
    request = GenerationRequest(words(4, 10), "name", 40, temperature=0)
    with running_engine(model) as engine:
        engine.registry.load("name", str(paths["one"]))
        first: SimpleQueue[Outcome] = SimpleQueue()
        engine.submit(request, first.put)
        engine.unload("name")
        with pytest.raises(NotFound, match="name"):
            engine.submit(request, first.put)
        engine.registry.load("name", str(paths["two"]))
        second = generate(engine, [request])[0]
        assert_logprobs(plain["one"], request, first.get(timeout=60))
    assert_logprobs(plain["two"], request, second)


def test_unloading_frees_the_prefixes_of_the_adapter(setting):
    model, paths, _ = setting
    with running_engine(model) as engine:
        engine.registry.load("one", str(paths["one"]))
        generate(engine, [GenerationRequest(words(1, 40), name, 3, seed=1) for name in ("one", "base")])
        before = engine.gauges()["prefix_cache_bytes"]
        engine.unload("one")
        generate(engine, [GenerationRequest(words(1, 40), "base", 3, seed=1)])
        assert engine.gauges()["prefix_cache_bytes"] == before // 2


def test_bad_adapters_are_refused_with_their_cure(setting, tmp_path):
    model, paths, _ = setting
    registry = AdapterRegistry("base", LoraMix(AutoModelForCausalLM.from_pretrained(model)).linears)
    good = paths["two"]

    def variant(name: str, change) -> Path:
        folder = tmp_path / name
        shutil.copytree(good, folder)
        change(folder)
        return folder

    def weights(function):
        def change(folder: Path) -> None:
            file = folder / "adapter_model.safetensors"
            save_file(function(load_file(file)), file)

        return change

    def config(**fields):
        def change(folder: Path) -> None:
            file = folder / "adapter_config.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | fields))

        return change

    bad = {
        "no adapter_config.json": tmp_path / "nowhere",
        "cannot be read": variant("torn", lambda f: (f / "adapter_model.safetensors").write_bytes(b"torn")),
        "Invalid JSON": variant("text", lambda f: (f / "adapter_config.json").write_text("{")),
        "use_dora true: must be False": variant("dora", config(use_dora=True)),
        "peft_type \"IA3\": must be 'LORA'": variant("ia3", config(peft_type="IA3")),
        "no factors of rank 5": variant("rank", config(r=5)),
        "no linear module": variant(
            "other", weights(lambda w: {k.replace("layers.0", "layers.9"): v for k, v in w.items()})
        ),
        "another base": variant(
            "wide", weights(lambda w: {k: torch.cat((v, v)) if "lora_B" in k else v for k, v in w.items()})
        ),
        "not finite": variant("nan", weights(lambda w: {k: v / 0 for k, v in w.items()})),
        "not a LoRA factor": variant("head", weights(lambda w: w | {"base_model.model.lm_head.weight": torch.ones(2)})),
    }
    for message, path in bad.items():
        with pytest.raises(BadRequest, match=message) as caught:
            registry.load("x", str(path))
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
        assert caught.value.param == "lora_path"
    assert registry.names() == []

    registry.load("x", str(good))
    registry.load("x", str(good))
    with pytest.raises(BadRequest, match="unload it first"):
        registry.load("x", str(paths["one"]))
    with pytest.raises(BadRequest, match="base model's name"):
        registry.load("base", str(good))
    with pytest.raises(NotFound, match="there are: base, x"):
        registry.get("z")


def test_stopping_fails_what_is_in_flight_and_what_comes_later(tiny_model_dir):
    results: list[Outcome | RequestError] = []
    with running_engine(tiny_model_dir, max_batch=1) as engine:
        for n in range(4):
            engine.submit(GenerationRequest(words(n, 10), "base", 200, seed=n), results.append)
        engine.stop()
        engine.submit(GenerationRequest(words(0, 10), "base", 5), results.append)
        engine.join(30)
    assert len(results) == 5
    assert sum(isinstance(r, Unavailable) for r in results) >= 4


def test_a_cancelled_request_leaves_the_batch(tiny_model_dir):
    results: list[Outcome | RequestError] = []
    with running_engine(tiny_model_dir, max_batch=1) as engine:
        running = engine.submit(GenerationRequest(words(0, 10), "base", 240, seed=3), results.append)
        waiting = engine.submit(GenerationRequest(words(1, 10), "base", 240, seed=3), results.append)
        running.cancelled = waiting.cancelled = True
        assert generate(engine, [GenerationRequest(words(2, 10), "base", 1)])[0].finish_reason
        assert engine.gauges()["running"] == 0
    assert len(results) == 2


def test_a_failed_step_fails_its_requests_and_nothing_else(tiny_model_dir, monkeypatch):
    with running_engine(tiny_model_dir) as engine:
        request = GenerationRequest(words(0, 10), "base", 3, seed=1)
        with monkeypatch.context() as broken:
            broken.setattr("trainer.serve.batch.sample", lambda *_, **__: 1 / 0)
            with pytest.raises(RequestError, match="ZeroDivisionError"):
                generate(engine, [request])
        assert len(generate(engine, [request])[0].token_ids) > 0


def test_the_prefix_cache_keeps_to_its_limit_and_drops_the_oldest():
    def snapshot(length: int) -> Snapshot:
        return Snapshot(length, torch.zeros(length), None)

    cache = PrefixCache(limit=4 * 25)
    ids = list(range(40))
    for length in (5, 10, 8):
        cache.put(key_of(None, ids[:length]), snapshot(length))
    assert cache.bytes == 4 * 23
    assert cache.longest(key_of(None, ids), below=40).length == 10
    assert cache.longest(key_of(None, ids), below=10).length == 8
    assert cache.longest(key_of(None, [1, *ids]), below=40) is None
    cache.put(key_of(None, ids[:6]), snapshot(6))
    assert key_of(None, ids[:5]) not in cache, "5 was not used for longest"
    assert cache.bytes == 4 * 24
    cache.put(key_of(None, ids[:26]), snapshot(26))
    assert cache.bytes == 4 * 24, "what does not fit at all drops nothing"


def test_a_model_that_the_packed_forward_gets_wrong_is_refused(tmp_path):
    folder = save_tiny_model(tmp_path / "model", kind="llama")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 4}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="mistral cannot run packed"), running_engine(folder):
        pass


def test_the_likeliest_tokens_are_those_of_the_plain_model(setting):
    model, _, plain = setting
    asked = GenerationRequest(words(3, 9), "base", 2, temperature=0, likeliest=5)
    with running_engine(model) as engine:
        outcome, other = generate(engine, [asked, GenerationRequest(words(4, 9), "base", 2, seed=1)])
    assert other.likeliest == ()
    assert [len(one) for one in outcome.likeliest] == [5, 5]
    with torch.no_grad():
        logprobs = plain["base"](torch.tensor([asked.prompt])).logits[0, -1].log_softmax(-1)
    expected = logprobs.topk(5)
    assert [token for token, _ in outcome.likeliest[0]] == expected.indices.tolist()
    np.testing.assert_allclose([p for _, p in outcome.likeliest[0]], expected.values.tolist(), atol=1e-4)
    assert outcome.likeliest[0][0] == (outcome.token_ids[0], pytest.approx(outcome.logprobs[0]))
