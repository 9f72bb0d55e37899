"""Weights of adapters: at 1 they are the sum; they move towards what was successful, if held-out tasks agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from trainer.peft_folder import read_peft_folder
from trainer.refusal import REFUSED
from trainer.tests.conftest import save_adapter
from trainer.weigh_adapters import main
from trainer.weigh_adapters.job import WeighJob
from trainer.weigh_adapters.model import WeighedAdapters, layer_of
from trainer.weigh_adapters.weigh import LEARNED_FILE


@pytest.fixture(scope="module")
def adapters(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("adapters")
    return [save_adapter(folder / str(n), tiny_model_dir, n, ["q_proj", "w1"], rank=4, alpha=32) for n in (1, 2)]


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


def run(folder: Path, body: dict[str, Any]) -> int:
    file = folder / "weigh.json"
    file.write_text(json.dumps(body))
    return main(["--job", str(file)])


def spoken(base: Path, adapter: Path) -> list[list[int]]:
    """What the base with this adapter alone says, greedily."""
    with torch.no_grad():
        from peft import PeftModel

        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).eval()
        said = []
        for n in range(6):
            ids = [20 + 3 * n, 21 + n, 25, 26 + n]
            for _ in range(6):
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            said.append(ids)
    return said


def test_successes_of_one_adapter_weigh_it_more_than_the_other(
    tiny_model_dir: Path, adapters: list[Path], tmp_path: Path
) -> None:
    body = job(tiny_model_dir, adapters, tmp_path / "out", spoken(tiny_model_dir, adapters[0]))
    assert run(tmp_path, body) == 0
    told = json.loads((tmp_path / "out" / LEARNED_FILE).read_text())
    first, second = (sum(row) / len(row) for row in told["weights"])
    assert second < 1
    assert second < first
    assert min(told["held_out_losses"]) < told["held_out_losses"][0]
    again = {**body, "output_dir": str(tmp_path / "again")}
    assert run(tmp_path, again) == 0
    files = ["adapter_model.safetensors", "adapter_config.json", LEARNED_FILE]
    assert all((tmp_path / "out" / n).read_bytes() == (tmp_path / "again" / n).read_bytes() for n in files)
    # What is written is what was learned: base and every adapter times its weight in the layer.
    weighed = WeighedAdapters(WeighJob.model_validate(body))
    weighed.weights.data.copy_(torch.tensor(told["weights"]))
    merged = read_peft_folder(tmp_path / "out")
    for module, (a, b) in merged.factors.items():
        parts = [part.factors[module] + (part.config.scale(module),) for part, _ in weighed.weighed()]
        expected = sum(scale * (right @ left) for left, right, scale in parts)
        assert torch.allclose(merged.config.scale(module) * (b @ a), expected, atol=1e-5)


def test_weights_of_one_are_the_sum(tiny_model_dir: Path, adapters: list[Path], tmp_path: Path) -> None:
    body = job(tiny_model_dir, adapters, tmp_path, [[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    weighed = WeighedAdapters(WeighJob.model_validate(body))
    plain = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    for path in adapters:
        part = read_peft_folder(path)
        for module, (a, b) in part.factors.items():
            plain.get_submodule(module).weight.data += part.config.scale(module) * (b @ a)
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    with torch.no_grad():
        expected = plain(ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
        assert torch.allclose(weighed.logprobs(ids)[0], expected, atol=1e-4)
    assert [name for name, p in weighed.model.named_parameters() if p.requires_grad] == []
    assert [layer_of("model.layers.11.w1"), layer_of("head")] == [11, 1_000_000]


def test_what_cannot_be_weighed(tiny_model_dir: Path, adapters: list[Path], tmp_path: Path, capsys: Any) -> None:
    good = job(tiny_model_dir, adapters, tmp_path / "out", [[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])
    for changes, said in [
        ({"adapters": good["adapters"][:1]}, "adapters"),
        ({"adapters": [*good["adapters"][:1], str(tmp_path)]}, "adapters.1"),
        ({"base_model": str(tmp_path / "none")}, "base_model"),
        ({"tasks": []}, "tasks []: "),
    ]:
        assert run(tmp_path, {**good, **changes}) == REFUSED
        assert f"weigh-adapters: {said}" in capsys.readouterr().err
