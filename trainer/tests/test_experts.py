"""LoRA on experts that a model holds in one parameter a layer: trained, saved, read, merged; against PEFT's own."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

from trainer.command import BadInput
from trainer.merge import MergeJob, Part, merge
from trainer.peft_folder import read_peft_folder
from trainer.serve.adapters import read_adapter
from trainer.serve.messages import BadRequest
from trainer.tests.conftest import filled
from trainer.tests.train_harness import LORA, Worker, make_job, parse_job
from trainer.train.learn import save_adapter
from trainer.train.model import build_model

WITH_EXPERTS = LORA | {"r": 3, "alpha": 6, "target_modules": ["q_proj", "experts"]}
IDS = torch.arange(2, 20)[None]


def ours(base: Path, folder: Path, seed: int, **lora: Any) -> Path:
    job = parse_job(make_job(base, folder / "out", lora=WITH_EXPERTS | lora))
    save_adapter(filled(build_model(job), seed, 0.1), folder)
    return folder


def pefts(base: Path, folder: Path, seed: int) -> Path:
    """By the names that the checkpoint has: PEFT gives the two that are fused twice the rank."""
    config = LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "gate_proj", "up_proj", "down_proj"])
    filled(get_peft_model(AutoModelForCausalLM.from_pretrained(base), config), seed, 0.1).save_pretrained(str(folder))
    return folder


def logits(base: Path, adapter: Path | None) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(base)
    with torch.no_grad():
        return (PeftModel.from_pretrained(model, str(adapter)) if adapter else model).eval()(IDS).logits


def deltas(base: Path, adapter: Path) -> dict[str, torch.Tensor]:
    """What an adapter adds to each weight, by PEFT."""
    model = AutoModelForCausalLM.from_pretrained(base)
    before = {name: weight.clone() for name, weight in model.double().named_parameters()}
    merged = PeftModel.from_pretrained(model, str(adapter), autocast_adapter_dtype=False).double().merge_and_unload()
    return {name: weight - before[name] for name, weight in merged.named_parameters()}


@pytest.mark.parametrize("made", [ours, pefts])
def test_what_is_read_and_written_is_what_peft_loads(tiny_moe_dir, tmp_path, made):
    adapter = made(tiny_moe_dir, tmp_path / "adapter", seed=1)
    read = read_peft_folder(adapter)
    assert {name.rpartition(".")[2] for name in read.factors} == {"q_proj", "gate_up_proj", "down_proj"}
    added = deltas(tiny_moe_dir, adapter)
    for name, (a, b) in read.factors.items():
        weight = name if a.ndim == 3 else f"{name}.weight"
        assert torch.allclose(read.config.scale(name) * (b @ a).double(), added[weight], atol=1e-6), name
    assert (logits(tiny_moe_dir, adapter) - logits(tiny_moe_dir, None)).abs().max() > 0.01


def test_a_sum_adds_what_its_parts_add(tiny_moe_dir, tmp_path):
    folders = [ours(tiny_moe_dir, tmp_path / "one", seed=1), pefts(tiny_moe_dir, tmp_path / "two", seed=2)]
    parts = [Part(path=str(folder), weight=weight) for folder, weight in zip(folders, (1.0, 0.5), strict=True)]
    merge(MergeJob(adapters=parts, output_dir=str(tmp_path / "sum")))
    one, two, both = (deltas(tiny_moe_dir, folder) for folder in (*folders, tmp_path / "sum"))
    assert max((one[name] + 0.5 * two[name] - both[name]).abs().max() for name in both) < 1e-6
    assert sum(value.abs().max() > 0.01 for value in both.values()) == 6


def test_a_trained_adapter_is_the_sum_of_its_halves(tiny_moe_dir, tmp_path):
    job = make_job(tiny_moe_dir, tmp_path / "out", lora=WITH_EXPERTS, steps=1, groups_per_step=1)
    first = Worker(tmp_path, job).run()
    assert first.exit_code == 0, first.stderr
    trained = tmp_path / "out/checkpoint-1"
    part = Part(path=str(trained), weight=0.5)
    merge(MergeJob(adapters=[part, part], output_dir=str(tmp_path / "sum")))
    assert torch.allclose(logits(tiny_moe_dir, trained), logits(tiny_moe_dir, tmp_path / "sum"), atol=1e-5)


def test_refused(tiny_moe_dir, tmp_path):
    with pytest.raises(BadInput, match="experts take none; set it to 0"):
        ours(tiny_moe_dir, tmp_path / "a", seed=1, dropout=0.1)
    adapter = ours(tiny_moe_dir, tmp_path / "b", seed=1)
    linears = {"model.layers.0.self_attn.q_proj": torch.nn.Linear(32, 32)}
    with pytest.raises(BadRequest, match="is of experts, which this server runs without adapters; take vLLM"):
        read_adapter("b", adapter, linears)
    config = adapter / "adapter_config.json"
    config.write_text(config.read_text().replace('"r": 3', '"r": 5'))
    with pytest.raises(BadInput, match="no factors of rank 5"):
        read_peft_folder(adapter)
