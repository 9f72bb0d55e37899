"""Gates inside the model: what they start from, what they learn, and that the server computes what the trainer does."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from trainer.command import REFUSED
from trainer.moe_gate import (
    GATE_CONFIG,
    GATE_WEIGHTS,
    LEARNED_FILE,
    GatedModel,
    GateJob,
    layers_of,
    read_gate_folder,
    write_gate_folder,
)
from trainer.peft_folder import read_peft_folder
from trainer.serve.messages import BadRequest, GenerationRequest
from trainer.tests.conftest import EOS, save_adapter
from trainer.tests.serving import generate, running_engine, words

TARGETS = {"lfm2": ["q_proj", "in_proj", "w1", "w2"], "llama": ["q_proj", "o_proj", "down_proj"]}


@pytest.fixture(scope="module", params=["lfm2", "llama"])
def setting(request, tiny_model_dir, tiny_llama_dir, tmp_path_factory):
    model = tiny_model_dir if request.param == "lfm2" else tiny_llama_dir
    folder = tmp_path_factory.mktemp("adapters")
    # The second leaves modules out and has another rank.
    targets = [TARGETS[request.param], TARGETS[request.param][:2]]
    return model, [save_adapter(folder / str(n), model, n, targets[n], rank=4 + 2 * n, alpha=16) for n in (0, 1)]


def job(base: Path, adapters: list[Path], out: Path, tasks: list[list[int]]) -> dict[str, Any]:
    rows = [{"prompt_ids": ids[:4], "completion_ids": ids[4:], "mask": [1] * (len(ids) - 4)} for ids in tasks]
    return {
        "base_model": str(base),
        "adapters": [str(path) for path in adapters],
        "tasks": [{"rows": [row], "rollouts": 1} for row in rows],
        "output_dir": str(out),
        "seed": 1,
        "threads": 1,
        "dtype": "float32",
        "tokens_per_forward": 64,
    }


def gated(setting: tuple[Path, list[Path]]) -> GatedModel:
    base, adapters = setting
    body = job(base, adapters, Path("unused"), [[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    return GatedModel(GateJob.model_validate(body))


def trained(setting: tuple[Path, list[Path]], folder: Path, seed: int = 3) -> GatedModel:
    """A gate of random maps, saved: what it gives depends on the token."""
    model = gated(setting)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters:
            parameter.normal_(0, 0.5)
    write_gate_folder(folder, base=str(setting[0]), gate=model.gate, adapters=setting[1])
    return model


def logprobs(adapters: GatedModel, request: GenerationRequest, ids: list[int]) -> list[float]:
    with torch.no_grad():
        found = adapters.logprobs(torch.tensor([request.prompt + ids]))[0]
    return found[len(request.prompt) - 1 :].tolist()


def test_a_gate_of_zeros_is_equal_shares_of_base_and_adapters(setting):
    base, paths = setting
    share = 1 / 3
    plain = AutoModelForCausalLM.from_pretrained(base).eval()
    for path in paths:
        part = read_peft_folder(path)
        for module, (a, b) in part.factors.items():
            plain.get_submodule(module).weight.data += share * part.config.scale(module) * (b @ a)
    adapters = gated(setting)
    ids = torch.tensor([words(1, 20), words(2, 20)])
    with torch.no_grad():
        expected = plain(ids).logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        assert torch.allclose(adapters.logprobs(ids), expected, atol=1e-4)
    adapters.logprobs(ids).sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in adapters.parameters)
    assert [name for name, p in adapters.model.named_parameters() if p.requires_grad] == []


def test_the_server_gives_the_trainers_logprobs_in_mixed_rows_and_with_prefixes_kept(setting, tmp_path):
    base, paths = setting
    expected = {name: trained(setting, tmp_path / name, seed) for name, seed in (("gate", 3), ("other", 4))}
    loaded = {"one": paths[0], **{name: tmp_path / name for name in expected}}
    with running_engine(base, loaded) as engine, running_engine(base, loaded, prefix_cache_mb=0) as uncached:
        prompts = [[*words(0, 30), EOS, *words(100 + n, 3 + n)] for n in range(12)]
        names = ["gate", "base", "other", "one"]
        for turn in range(3):
            requests = [GenerationRequest(p, names[n % 4], 5, seed=turn) for n, p in enumerate(prompts)]
            outcomes, again = generate(engine, requests), generate(uncached, requests)
            assert [one.token_ids for one in outcomes] == [one.token_ids for one in again]
            assert all(one.cached_tokens > 0 for one in outcomes) or turn == 0
            for request, outcome, fresh in zip(requests, outcomes, again, strict=True):
                np.testing.assert_allclose(outcome.logprobs, fresh.logprobs, atol=1e-4)
                if request.model in expected:
                    trainers = logprobs(expected[request.model], request, outcome.token_ids)
                    np.testing.assert_allclose(outcome.logprobs, trainers, atol=1e-4)
            prompts = [[*p, *o.token_ids, *words(200 + turn, 4)] for p, o in zip(prompts, outcomes, strict=True)]
        # Alone in the batch, no mask is shared with others.
        alone = generate(engine, [GenerationRequest(prompts[0], "gate", 5, seed=9)])[0]
        trainers = logprobs(expected["gate"], GenerationRequest(prompts[0], "gate", 5), alone.token_ids)
        np.testing.assert_allclose(alone.logprobs, trainers, atol=1e-4)


@pytest.fixture(scope="module")
def told_apart(tiny_llama_dir, tmp_path_factory):
    """Two adapters, and what the first says of prompts of one kind, the second of those of another, in turn."""
    folder = tmp_path_factory.mktemp("told-apart")
    paths = [save_adapter(folder / str(n), tiny_llama_dir, n, TARGETS["llama"], alpha=16) for n in (1, 2)]
    rng, tasks = random.Random(1), []
    models = [PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tiny_llama_dir), p).eval() for p in paths]
    for n in range(40):
        ids = rng.choices([range(15, 35), range(40, 60)][n % 2], k=6)
        for _ in range(4):
            with torch.no_grad():
                ids.append(int(models[n % 2](torch.tensor([ids])).logits[0, -1].argmax()))
        tasks.append(ids)
    return (tiny_llama_dir, paths), tasks


def test_a_gate_learns_which_adapter_an_input_needs(told_apart, tmp_path, ask):
    (base, paths), tasks = told_apart
    body = job(base, paths, tmp_path / "out", tasks)
    assert ask("train-gate", body) == (0, None)
    losses = json.loads((tmp_path / "out" / LEARNED_FILE).read_text())["held_out_losses"]
    assert min(losses) < losses[0]
    gate, parts = read_gate_folder(tmp_path / "out")
    names = ["adapter_config.json", "adapter_model.safetensors"]
    assert all((p / n).read_bytes() == (q / n).read_bytes() for p, q in zip(parts, paths, strict=True) for n in names)
    adapters = gated((base, paths))
    for learned, (weight, bias) in zip(gate.values(), adapters.gate.values(), strict=True):
        weight.data.copy_(learned[0])
        bias.data.copy_(learned[1])
    seen: list[torch.Tensor] = []
    for layer in layers_of(adapters.factors):
        hook = adapters.model.get_submodule(layer)
        hook.register_forward_hook(lambda *_: seen.append(adapters._mask.mean((0, 1))))
    # The first adapter's advantage over the second, where it spoke and where the other did.
    advantage = []
    for side in (0, 1):
        with torch.no_grad():
            adapters.logprobs(torch.tensor(tasks[side::2]))
        first, second = (adapters.blocks / adapters.blocks.sum(1, keepdim=True)) @ torch.stack(seen).mean(0)
        advantage.append((first - second).item())
        seen.clear()
    assert advantage[0] > advantage[1] + 0.02
    assert ask("train-gate", {**body, "output_dir": str(tmp_path / "again")}) == (0, None)
    names = [GATE_CONFIG, GATE_WEIGHTS, LEARNED_FILE]
    assert all((tmp_path / "out" / n).read_bytes() == (tmp_path / "again" / n).read_bytes() for n in names)


def test_a_folder_that_holds_no_gate_of_this_base_is_refused(setting, tmp_path):
    base, _ = setting
    trained(setting, tmp_path / "gate")
    config, tensors = (tmp_path / "gate" / GATE_CONFIG).read_text(), load_file(tmp_path / "gate" / GATE_WEIGHTS)
    first = next(iter(tensors))
    with running_engine(base) as engine:
        for changed, said in [
            ((config.replace('"adapters": 2', '"adapters": 3'), tensors), "no gate of 4 outputs"),
            ((config.replace('"format": 2', '"format": 1'), tensors), "format"),
            ((config, {**tensors, first: tensors[first] * float("nan")}), "not finite"),
            ((config, {k: v[..., :8] if k.endswith("weight") else v for k, v in tensors.items()}), "another base"),
        ]:
            (tmp_path / "gate" / GATE_CONFIG).write_text(changed[0])
            save_file({k: v.contiguous() for k, v in changed[1].items()}, tmp_path / "gate" / GATE_WEIGHTS)
            with pytest.raises(BadRequest, match=said):
                engine.registry.load("gate", str(tmp_path / "gate"))


def test_what_no_gate_can_be_trained_on(setting, tmp_path, ask, capsys):
    good = job(*setting, tmp_path / "out", [[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    for changes, said in [
        ({"adapters": good["adapters"][:1]}, "adapters"),
        ({"adapters": [*good["adapters"][:1], str(tmp_path)]}, "adapters.1"),
        ({"base_model": str(tmp_path / "none")}, "base_model"),
        ({"tasks": []}, "tasks []: "),
        ({"gate": None}, "gate null: no such field"),
    ]:
        assert ask("train-gate", {**good, **changes}) == (REFUSED, None)
        assert f"train-gate: {said}" in capsys.readouterr().err
