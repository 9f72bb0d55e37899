"""Prefixes that are kept change no sample, and take no more room than they may."""

from __future__ import annotations

from queue import SimpleQueue

import torch

from trainer.serve.generation import GenerationRequest
from trainer.serve.prefix_cache import PrefixCache, key_of
from trainer.serve.state_pool import Snapshot
from trainer.tests.serving import EOS, assert_logprobs, generate, running_engine, words


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


def test_unloading_frees_the_prefixes_of_the_adapter(setting):
    model, paths, _ = setting
    with running_engine(model) as engine:
        engine.registry.load("one", str(paths["one"]))
        generate(engine, [GenerationRequest(words(1, 40), name, 3, seed=1) for name in ("one", "base")])
        before = engine.gauges()["prefix_cache_bytes"]
        engine.unload("one")
        generate(engine, [GenerationRequest(words(1, 40), "base", 3, seed=1)])
        assert engine.gauges()["prefix_cache_bytes"] == before // 2


def test_what_still_runs_with_an_unloaded_adapter_leaves_no_prefix(setting, monkeypatch):
    model, paths, _ = setting
    monkeypatch.setattr("trainer.serve.runner._eos_ids", lambda _: frozenset())  # no answer ends early
    ended: SimpleQueue = SimpleQueue()
    with running_engine(model, max_batch=1) as engine:
        engine.registry.load("one", str(paths["one"]))
        for n in range(2):  # one runs, the other waits
            engine.submit(GenerationRequest(words(n, 40), "one", 200), ended.put)
        engine.unload("one")
        assert [len(ended.get(timeout=60).token_ids) for _ in range(2)] == [200, 200]
        assert engine.gauges()["prefix_cache_bytes"] == 0


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
