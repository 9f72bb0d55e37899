"""A merged adapter against its parts as PEFT has them, and what can't be merged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from trainer.__main__ import main
from trainer.command import REFUSED
from trainer.peft_folder import read_peft_folder
from trainer.tests.conftest import save_adapter
from trainer.tests.train_harness import CONFIG, WEIGHTS, changed_config, changed_weights, copy_of

FILES = [CONFIG, WEIGHTS]


@pytest.fixture(scope="module")
def parts(tiny_model_dir, tmp_path_factory):
    """Adapters of unlike rank, scale and modules: `plain` has in_proj to itself, `odd` w2."""
    folder = tmp_path_factory.mktemp("parts")
    return {
        "plain": save_adapter(folder / "plain", tiny_model_dir, 1, ["q_proj", "w1", "in_proj"], rank=4, alpha=8),
        "odd": save_adapter(
            folder / "odd", tiny_model_dir, 2, ["q_proj", "w1", "w2"], rank=8, alpha=4, use_rslora=True
        ),
    }


def job_of(folder: Path, parts: dict[Path, float], **changes: Any) -> list[str]:
    adapters = [{"path": str(path), "weight": weight} for path, weight in parts.items()]
    job = folder / "merge.json"
    job.write_text(json.dumps({"adapters": adapters, "output_dir": str(folder / "merged"), **changes}))
    return ["merge", "--in", str(job), "--out", str(folder / "answer.json")]


def merged(folder: Path, parts: dict[Path, float]) -> Path:
    assert main(job_of(folder, parts)) == 0
    return folder / "merged"


def deltas(model: PeftModel, name: str) -> dict[str, torch.Tensor]:
    """Returns the nonzero changes that PEFT makes to each weight for an adapter."""
    layers = ((module, layer) for module, layer in model.named_modules() if name in getattr(layer, "lora_A", ()))
    found = {module: layer.get_delta_weight(name).double() for module, layer in layers}
    return {module: delta for module, delta in found.items() if delta.abs().max() > 0}


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.7, 0.3), (2.0, -0.5)])
def test_it_is_the_weighted_sum_of_its_parts(tiny_model_dir, parts, tmp_path, weights):
    folder = merged(tmp_path, dict(zip(parts.values(), weights, strict=True)))
    base = AutoModelForCausalLM.from_pretrained(tiny_model_dir)
    model = PeftModel.from_pretrained(base, parts["plain"], adapter_name="plain").eval()
    for name, path in (("odd", parts["odd"]), ("merged", folder)):
        result = model.load_adapter(path, name)
        assert result.missing_keys == result.unexpected_keys == []
    expected: dict[str, torch.Tensor] = {}
    for name, weight in zip(parts, weights, strict=True):
        for module, delta in deltas(model, name).items():
            expected[module] = expected.get(module, 0) + weight * delta
    ours = deltas(model, "merged")
    assert ours.keys() == expected.keys()
    assert {module.rsplit(".", 1)[-1] for module in ours} == {"q_proj", "w1", "w2", "in_proj"}
    for module, delta in ours.items():
        torch.testing.assert_close(delta, expected[module], atol=1e-6, rtol=0)


def test_the_same_job_gives_the_same_bytes_and_replaces_its_output(tiny_model_dir, parts, tmp_path):
    """Base models may have unlike names: one folder has many. The first one's is taken over."""
    moved = copy_of(parts["odd"], tmp_path / "odd", lambda f: changed_config(f, base_model_name_or_path="/elsewhere"))
    job = {parts["plain"]: 0.7, moved: 0.3}
    first = [(merged(tmp_path, job) / name).read_bytes() for name in FILES]
    other = [(merged(tmp_path, {parts["plain"]: 0.6}) / name).read_bytes() for name in FILES]
    again = [(merged(tmp_path, job) / name).read_bytes() for name in FILES]
    assert first == again != other
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.json", "merge.json", "merged", "odd"]
    assert sorted(path.name for path in (tmp_path / "merged").iterdir()) == FILES
    config = json.loads(first[0])
    assert (config["r"], config["lora_alpha"], config["base_model_name_or_path"]) == (12, 12, str(tiny_model_dir))
    assert {name.rsplit(".", 1)[-1] for name in config["target_modules"]} == {"q_proj", "w1", "w2", "in_proj"}
    assert config["inference_mode"] is True and config["peft_type"] == "LORA" and config["task_type"] == "CAUSAL_LM"


def configured(**fields: Any) -> Callable[[Path], None]:
    return lambda folder: changed_config(folder, **fields)


def weighed(factor: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    return lambda folder: changed_weights(folder, lambda name, t: change(t) if factor in name else t)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (configured(peft_type="IA3"), "peft_type \"IA3\": must be 'LORA'"),
        (configured(use_dora=True), "use_dora true: must be False"),
        (configured(bias="all"), "bias \"all\": must be 'none'"),
        (configured(modules_to_save=["lm_head"]), 'modules_to_save ["lm_head"]: must be null'),
        (configured(rank_pattern={"w2": 2}), "rank_pattern"),
        (configured(r=5), "no factors of rank 5; save the adapter again"),
        (weighed("lora_B", lambda b: torch.cat((b, b))), "; name adapters of one base model"),
        (weighed("lora_B", lambda b: b.flatten()), "no factors of rank"),
        (weighed("lora_A", lambda a: a / 0), "not finite; the training diverged"),
        (lambda folder: (folder / CONFIG).unlink(), "no adapter_config.json there; name a PEFT adapter"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"torn"), "cannot be read"),
    ],
)
def test_unmergeable_adapters_are_refused(parts, tmp_path, capfd, change, said):
    bad = copy_of(parts["odd"], tmp_path / "bad", change)
    assert main(job_of(tmp_path, {parts["plain"]: 1, bad: 1})) == REFUSED
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert err.startswith("merge: adapters.1") and said in err
    assert not (tmp_path / "merged").exists()


def test_a_part_is_never_replaced(parts, tmp_path, capfd):
    part = copy_of(parts["odd"], tmp_path / "part")
    assert main(job_of(tmp_path, {part: 1}, output_dir=str(part))) == REFUSED
    assert "is one of the adapters; name a new folder" in capfd.readouterr().err
    assert read_peft_folder(part).factors
