"""The shipped base models: size, tokenizer, and what they can do in the real environment."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from examples.shop.base_model import text as conversation
from examples.shop.base_model.__main__ import SKILLS, main, parse_lack
from examples.shop.base_model.measure import gate_failures, measure, most_planted
from examples.shop.base_model.play import Player, play

ROOT = Path(__file__).parents[4]
BASES = sorted(file.parent for file in (ROOT / "models").glob("*/base.json"))
DEFAULT = ROOT / "models/base"


@pytest.fixture(scope="module")
def demos():
    with Player() as player:
        return player.demonstrations(120, 5, dict.fromkeys(SKILLS, 0.5))


@pytest.fixture(scope="module")
def tok():
    return AutoTokenizer.from_pretrained(DEFAULT)


@pytest.fixture(scope="module")
def tools(demos):
    return demos["environment"]["tools"]


@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_the_shipped_folder_is_small_and_passed_its_gates(folder):
    record = json.loads((folder / "base.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert 1e6 <= sum(p.numel() for p in model.parameters()) <= 4e6
    assert all(p.dtype == torch.float32 for p in model.parameters())
    limit = 8e6 if folder.name == "base" else 4.2e6
    assert sum(f.stat().st_size for f in folder.iterdir()) <= limit
    assert record["gate_failures"] == [] == gate_failures(record["train_sampled"], record["lacks"])


@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_success_in_the_real_environment_matches_base_json(folder, tools):
    record = json.loads((folder / "base.json").read_text())
    lacks = record["lacks"]
    model, tok = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(7)
    with Player() as player:
        tasks = player.tasks(120)
        rollouts = play(model, tok, player, tools, tasks)
        single = [t for t in tasks if len(t["skills"]) == 1 and t["skills"][0] in lacks]
        planted = play(model, tok, player, tools, single * 2)
    measured = measure(rollouts)
    # Two standard errors of 120 rollouts.
    assert measured["all"]["success"] == pytest.approx(record["train_sampled"]["all"]["success"], abs=0.1)
    for skill, figure in measured["alone"].items():
        if skill not in lacks:
            assert figure["success"] >= 0.8, skill
    for skill, figure in measure(planted)["alone"].items():
        assert figure["success"] <= most_planted(lacks[skill], figure["n"]), skill
        assert figure["success"] > 0 or lacks[skill] > 0.9, skill


def test_rendering_returns_the_sampled_ids(demos, tok, tools):
    for demo in demos["demonstrations"]:
        text = conversation.render(tok, demo["messages"], tools, False)
        ids = tok.encode(text)
        assert tok.unk_token_id not in ids
        assert tok.encode(tok.decode(ids)) == ids
        for i, message in enumerate(demo["messages"]):
            if message["role"] != "assistant":
                continue
            prompt = tok.encode(conversation.render(tok, demo["messages"][:i], tools, True))
            turn = tok.encode(conversation.render(tok, demo["messages"][: i + 1], tools, False))[len(prompt) :]
            assert turn[-1] == tok.eos_token_id
            again = conversation.parse(tok.decode(turn), tools)
            assert [(c["name"], c["arguments"]) for c in again.get("toolCalls", [])] == [
                (c["name"], c["arguments"]) for c in message.get("toolCalls", [])
            ]
            reread = [*demo["messages"][:i], again]
            assert tok.encode(conversation.render(tok, reread, tools, False)) == prompt + turn


def test_the_loss_is_on_the_models_own_tokens(demos, tok, tools):
    ids, mask = conversation.to_row(tok, demos["demonstrations"][0]["messages"], tools, prompt=True)
    own = tok.decode([i for i, m in zip(ids, mask, strict=True) if m])
    said = [m for m in demos["demonstrations"][0]["messages"] if m["role"] == "assistant"]
    assert own.count("<|end|>") == len(said) and "<|assistant|>" not in own and "<|tool|>" not in own
    short, _ = conversation.to_row(tok, demos["demonstrations"][0]["messages"], tools, prompt=False)
    assert ids[-len(short) :] == short and tok.decode(short).startswith("<|user|>")


@pytest.mark.parametrize("value", ["refuse", "refuse=", "refuse=2", "patience=0.5"])
def test_a_bad_lack_is_a_one_line_error(value, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "x"), "--lack", value])
    assert repr(value) in capsys.readouterr().err
    assert parse_lack("refuse=0.5") == ("refuse", 0.5)
    assert parse_lack("tell=0.95") == ("tell", 0.95)
