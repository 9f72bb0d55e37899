"""Adapters in the engine: merged or not, alone or among others, replaced, refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from queue import SimpleQueue

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from trainer.merge import MergeJob, Part, merge
from trainer.serve.adapters import AdapterRegistry
from trainer.serve.errors import BadRequest, NotFound, RequestError
from trainer.serve.generation import GenerationRequest, Outcome
from trainer.serve.lora_mix import LoraMix
from trainer.serve.row import Generation
from trainer.serve.worker import build
from trainer.tests.serving import assert_logprobs, generate, running_engine, words


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


@pytest.fixture
def overflowing(setting, tmp_path):
    """An adapter that is finite, and whose products with the hidden states are not."""
    _, paths, _ = setting
    shutil.copytree(paths["one"], tmp_path / "bad")
    weights = load_file(tmp_path / "bad/adapter_model.safetensors")
    huge = {name: torch.full_like(value, 3e38) for name, value in weights.items() if "lora_A" in name}
    save_file({**weights, **huge}, tmp_path / "bad/adapter_model.safetensors")
    return tmp_path / "bad"


def test_rows_beside_an_adapter_that_overflows_are_as_alone(setting, overflowing):
    model, paths, plain = setting
    requests = [GenerationRequest(words(n, 20 + n), name, 8, seed=n) for n, name in enumerate(["bad", "base", "one"])]
    results: SimpleQueue = SimpleQueue()
    with running_engine(model) as engine:
        engine.registry.load("bad", str(overflowing))
        engine.registry.load("one", str(paths["one"]))
        for request in requests:
            engine.submit(request, lambda result, request=request: results.put((request.model, result)))
        ended = dict(results.get(timeout=60) for _ in requests)
    assert "not finite" in str(ended["bad"])
    for request in requests[1:]:
        assert_logprobs(plain[request.model], request, ended[request.model])


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_row_that_is_not_finite_leaves_nothing_in_its_slot(setting, overflowing, monkeypatch, cancelled):
    model, _, plain = setting
    monkeypatch.setattr("trainer.serve.batch.PREFILL_TOKENS", 50)
    engine = build(str(model), model_name="base", max_batch=2, threads=1, prefix_cache_mb=0, device="cpu")
    engine.registry.load("bad", str(overflowing))
    ended: list[Outcome | RequestError] = []

    def row(name: str, length: int) -> Generation:
        request = GenerationRequest(words(length, length), name, 8, seed=1)
        return Generation(request, engine.registry.get(name), ended.append)

    bad, short, long = row("bad", 100), row("base", 10), row("base", 95)
    with torch.inference_mode():
        engine._batch.add(bad)
        while len(ended) < 1:
            engine._batch.step()
            bad.cancelled = cancelled
        # Attention looks at as much of the short row's slot as the long one has.
        for one in (short, long):
            engine._batch.add(one)
        while len(ended) < 3:
            engine._batch.step()
    assert ("cancelled" if cancelled else "not finite") in str(ended[0])
    assert_logprobs(plain["base"], short.request, ended[1])
    assert_logprobs(plain["base"], long.request, ended[2])


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
