"""Adapters and kept prefixes in the engine: merged or not, alone or among others, replaced, refused; they change no
sample."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from trainer.serve.adapters import AdapterRegistry, LoraMix
from trainer.serve.messages import BadRequest, GenerationRequest, NotFound
from trainer.tests.serving import EOS, assert_logprobs, generate, running_engine, submitted, words
from trainer.tests.train_harness import WEIGHTS, changed_weights, copy_of


def test_an_adapter_of_a_model_too_large_to_merge_is_served_by_its_factors(setting, monkeypatch):
    model, paths, plain = setting
    monkeypatch.setattr("trainer.serve.adapters.MERGE_LIMIT", 0)
    requests = [GenerationRequest(words(n, 20), "one", 4, seed=n) for n in range(3)]
    with running_engine(model, paths) as engine:
        for request, outcome in zip(requests, generate(engine, requests), strict=True):
            assert_logprobs(plain["one"], request, outcome)


def test_a_running_request_keeps_the_adapter_that_is_unloaded_and_replaced(setting):
    model, paths, plain = setting
    request = GenerationRequest(words(4, 10), "name", 40, temperature=0)
    with running_engine(model, {"name": paths["one"]}) as engine:
        first = submitted(engine, request)
        engine.unload("name")
        with pytest.raises(NotFound, match="name"):
            submitted(engine, request)
        engine.registry.load("name", str(paths["two"]))
        second = generate(engine, [request])[0]
        assert_logprobs(plain["one"], request, first.result(60))
    assert_logprobs(plain["two"], request, second)


@pytest.fixture
def overflowing(setting, tmp_path):
    """An adapter that is finite, and whose products with the hidden states are not."""
    _, paths, _ = setting

    def huge(name: str, value: torch.Tensor) -> torch.Tensor:
        return torch.full_like(value, 3e38) if "lora_A" in name else value

    return copy_of(paths["one"], tmp_path / "bad", lambda folder: changed_weights(folder, huge))


def test_rows_beside_an_adapter_that_overflows_are_as_alone(setting, overflowing):
    model, paths, plain = setting
    requests = [GenerationRequest(words(n, 20 + n), name, 8, seed=n) for n, name in enumerate(["bad", "base", "one"])]
    with running_engine(model, {"bad": overflowing, "one": paths["one"]}) as engine:
        bad, *others = [future.result(60) for future in [submitted(engine, request) for request in requests]]
    assert "not finite" in str(bad)
    for request, outcome in zip(requests[1:], others, strict=True):
        assert_logprobs(plain[request.model], request, outcome)


def test_bad_adapters_are_refused_with_their_cure(setting, tmp_path):
    model, paths, _ = setting
    registry = AdapterRegistry(LoraMix(AutoModelForCausalLM.from_pretrained(model)).linears)
    good = paths["two"]

    def elsewhere(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        save_file({name.replace("layers.0", "layers.9"): tensor for name, tensor in weights.items()}, folder / WEIGHTS)

    bad = {
        "no adapter_config.json": shutil.rmtree,
        "no linear module": elsewhere,
        "another base": lambda f: changed_weights(f, lambda n, v: torch.cat((v, v)) if "lora_B" in n else v),
    }
    for number, (message, change) in enumerate(bad.items()):
        path = copy_of(good, tmp_path / str(number), change)
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


def test_resumed_turns_take_the_prefix_from_the_cache_and_change_nothing(setting):
    model, paths, plain = setting
    with running_engine(model, paths) as engine, running_engine(model, paths, prefix_cache_mb=0) as uncached:
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


def test_a_request_with_an_unloaded_adapter_leaves_no_prefix(tiny_model_dir, adapters, monkeypatch):
    monkeypatch.setattr("trainer.serve.packed.eos_ids", lambda _: frozenset())  # no answer ends early
    with running_engine(tiny_model_dir, {"one": adapters[0]}, max_batch=1) as engine:
        ended = [submitted(engine, GenerationRequest(words(n, 40), "one", 200)) for n in range(2)]  # one waits
        engine.unload("one")
        assert [len(future.result(60).token_ids) for future in ended] == [200, 200]
        assert engine._batch.cache.bytes == 0
