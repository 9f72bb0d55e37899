"""Log-probs by which a policy server proves its base model: of the same model the same, of another model far away."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
import torch
from transformers import AutoModelForCausalLM

from trainer.command import REFUSED
from trainer.model_folder import FINGERPRINT_IDS, fingerprint
from trainer.model_folder import fingerprint_main as main

BASE = Path(__file__).resolve().parents[2] / "models" / "base"


def off_by(one: dict, other: dict) -> float:
    assert one["ids"] == other["ids"]
    return median(abs(p - q) for p, q in zip(one["logprobs"], other["logprobs"], strict=True))


def saved(model: torch.nn.Module, folder: Path) -> str:
    model.save_pretrained(folder)
    return str(folder)


def test_rounding_moves_it_little_and_other_weights_move_it_far(tmp_path: Path) -> None:
    own = fingerprint(str(BASE))
    assert len(own["ids"]) == FINGERPRINT_IDS == len(own["logprobs"]) + 1
    assert fingerprint(str(BASE)) == own
    model = AutoModelForCausalLM.from_pretrained(BASE)
    for n in (1, 7, FINGERPRINT_IDS - 1):  # each given those before it
        logits = model(torch.tensor([own["ids"][:n]])).logits[0, -1]
        assert own["logprobs"][n - 1] == pytest.approx(logits.log_softmax(-1)[own["ids"][n]].item(), abs=1e-3)
    rounded = fingerprint(saved(AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.bfloat16), tmp_path / "half"))
    assert 0 < off_by(own, rounded) < 0.1
    torch.manual_seed(1)
    random = AutoModelForCausalLM.from_config(AutoModelForCausalLM.from_pretrained(BASE).config)
    assert off_by(own, fingerprint(saved(random, tmp_path / "random"))) > 1


def test_a_folder_without_a_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "question.json", tmp_path / "fingerprint.json"
    source.write_text(json.dumps({"model": str(tmp_path)}))
    assert main(["--in", str(source), "--out", str(out)]) == REFUSED
    assert str(tmp_path) in capsys.readouterr().err
    assert not out.exists()
