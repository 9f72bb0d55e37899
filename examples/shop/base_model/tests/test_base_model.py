"""The shipped base models: size, tokenizer, and what they can do in the real environment."""

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from examples.shop.base_model import text as conversation
from examples.shop.base_model.__main__ import SKILLS, main, parse_lack
from examples.shop.base_model.measure import (
    MIN_SUCCESS,
    expected_success,
    gate_failures,
    measure,
    most_planted,
    most_success,
)
from examples.shop.base_model.play import Player, Rollout, demonstrations, play

ROOT = Path(__file__).parents[4]
BASES = sorted(file.parent for file in (ROOT / "models").glob("*/base.json"))
DEFAULT = ROOT / "models/base"


@pytest.fixture(scope="module")
def demos():
    return list(demonstrations(120, 5, dict.fromkeys(SKILLS, 0.5)))


@pytest.fixture(scope="module")
def tok():
    return AutoTokenizer.from_pretrained(DEFAULT)


@pytest.fixture(scope="module")
def tools(demos):
    return demos[0]["environment"]["tools"]


@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_the_shipped_folder_is_small_and_passed_its_gates(folder):
    record = json.loads((folder / "base.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert 1e6 <= sum(p.numel() for p in model.parameters()) <= 4e6
    assert all(p.dtype == torch.float32 for p in model.parameters())
    limit = 8e6 if folder.name == "base" else 4.2e6
    assert sum(f.stat().st_size for f in folder.iterdir()) <= limit
    assert (
        record["gate_failures"] == [] == gate_failures(record["train_sampled"], record["lacks"], record["max_success"])
    )


@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_it_does_in_the_real_environment_what_base_json_says(folder, tools):
    record = json.loads((folder / "base.json").read_text())
    lacks = record["lacks"]
    model, tok = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(7)
    with Player() as player:
        tasks = player.tasks("train", "train", 120)
        rollouts = play(model, tok, player, tools, tasks, 1.0)
        single = [t for t in tasks if len(t["skills"]) == 1 and t["skills"][0] in lacks]
        planted = play(model, tok, player, tools, single * 2, 1.0)
    measured = measure(rollouts)
    # Two standard errors of 120 rollouts on either side of the gate's band.
    assert MIN_SUCCESS - 0.1 <= measured["all"]["success"] <= record["max_success"] + 0.1
    assert all(value > 0 for value in measured["components"].values())
    for skill, figure in measured["alone"].items():
        if skill not in lacks:
            assert figure["success"] >= 0.8, skill
    for skill, figure in measure(planted)["alone"].items():
        assert figure["success"] <= most_planted(lacks[skill], figure["n"]), skill
        assert figure["success"] > 0 or lacks[skill] > 0.9, skill


def test_rendering_gives_back_what_was_sampled(demos, tok, tools):
    for demo in demos[1:]:
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


def test_ids_numbers_and_call_parts_are_one_token_each(tok, tools):
    text = '<|call|>return_item(item="red lamp", id="i42", refund="25")<|end|>'
    expected = ["<|call|>", 'return_item(item="', "red", "lamp", '", id="', "i42", '", refund="', "25", '")', "<|end|>"]
    assert tok.tokenize(text) == expected
    assert tok.tokenize(text.replace('", ', '" , ').replace("(", "(  ")) != expected
    for tool in tools:
        assert tok.tokenize(conversation.signature(tool)) == [conversation.signature(tool)]
        words = conversation.schema_words(tool["parameters"]) + conversation.schema_words(tool.get("outputSchema", {}))
        assert all(tok.tokenize(word) == [word] for word in words)


def test_arguments_may_be_a_dict_or_json_text(tok, tools):
    arguments = {"item": "red lamp", "id": "i42", "refund": 25}
    shown = [{"type": "function", "function": t} for t in tools]
    texts = set()
    for value in (arguments, json.dumps(arguments), json.dumps(arguments, separators=(",", ":"))):
        call = {"id": "call_0", "type": "function", "function": {"name": "return_item", "arguments": value}}
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call, call]},
        ]
        texts.add(tok.apply_chat_template(messages, tools=shown, tokenize=False))
    (text,) = texts
    assert text.count('<|call|>return_item(item="red lamp", id="i42", refund="25")') == 2
    assert text.startswith("<|system|> tools : get_account(user) list_stock(item)")


def test_the_loss_is_on_the_models_own_tokens(demos, tok, tools):
    ids, mask = conversation.to_row(tok, demos[1]["messages"], tools, prompt=True)
    own = tok.decode([i for i, m in zip(ids, mask, strict=True) if m])
    said = [m for m in demos[1]["messages"] if m["role"] == "assistant"]
    assert own.count("<|end|>") == len(said) and "<|assistant|>" not in own and "<|tool|>" not in own
    short, _ = conversation.to_row(tok, demos[1]["messages"], tools, prompt=False)
    assert ids[-len(short) :] == short and tok.decode(short).startswith("<|user|>")


def test_varied_prompts_keep_the_used_tools_in_order(demos, tools):
    names = [t["name"] for t in tools]
    sizes = set()
    for seed, demo in enumerate(demos[1:]):
        messages, shown = conversation.vary_prompt(demo["messages"], tools, random.Random(seed))
        kept = [t["name"] for t in shown]
        used = {c["name"] for m in messages for c in m.get("toolCalls", [])}
        assert used <= set(kept) and kept == [n for n in names if n in kept]
        assert messages[1:] == demo["messages"][1:]
        sizes.add(len(kept))
    assert len(sizes) > 3


def test_gates_name_what_is_missed():
    def rollouts(skill: str, reward: int, n: int) -> list[Rollout]:
        evaluation = {"reward": reward, "breakdown": {"db": 1, "info": reward}}
        return [Rollout({"id": "t", "skills": [skill]}, [], evaluation) for _ in range(n)]

    good = rollouts("tell", 1, 3) + rollouts("tell", 0, 9) + rollouts("ask", 1, 2)
    assert gate_failures(measure(good), {"tell": 0.75}, 0.5) == []
    assert any("component info" in f for f in gate_failures(measure(rollouts("tell", 0, 5)), {"tell": 1}, 0.5))


# Single tasks of `train`, sampled twice: base.json of the shipped base.
ROLLOUTS = {"ask": 40, "choose": 62, "complete_all": 42, "compute": 68, "refuse": 64, "tell": 66}


def measured_as(total: float, alone: dict[str, float]) -> dict:
    """What `measure` gives of a base with these successes; what is not named is whole."""
    figures = {skill: {"success": alone.get(skill, 0.98), "n": n} for skill, n in ROLLOUTS.items()}
    return {"all": {"success": total, "n": 800}, "components": {"db": 0.5, "info": 0.5}, "alone": figures}


@pytest.fixture(scope="module")
def train_tasks():
    with Player() as player:
        return player.tasks("train", "train", 400)


def test_what_demonstrations_leave_is_what_the_shipped_base_can_do_where_its_lacks_are_whole(train_tasks):
    """Greedy, the shipped base never does what it lacks."""
    record = json.loads((DEFAULT / "base.json").read_text())
    whole = dict.fromkeys(record["lacks"], 1.0)
    assert expected_success(train_tasks, whole) == pytest.approx(record["train_greedy"]["all"]["success"], abs=0.02)
    assert expected_success(train_tasks, {}) == 1
    # As before two lacks were known to need 0.65.
    assert most_success(train_tasks, {"choose": 0.75, "compute": 0.75}) == pytest.approx(0.65, abs=0.03)


@pytest.mark.parametrize("skill", SKILLS)
def test_one_lack_planted_at_095_has_gates_that_a_base_like_its_demonstrations_passes(skill, train_tasks):
    lacks = {skill: 0.95}
    total = expected_success(train_tasks, lacks)
    # By chance a twentieth of 40 to 68 rollouts may be none of them, and twice as many.
    for success in (0.0, 0.05, 0.10):
        assert gate_failures(measured_as(total, {skill: success}), lacks, most_success(train_tasks, lacks)) == []
    # A base that lacks it at 0.75 only is not what was asked for, and neither is one that is damaged elsewhere.
    (weak,) = gate_failures(measured_as(total, {skill: 0.25}), lacks, most_success(train_tasks, lacks))
    assert f"success in {skill}, planted at 0.95, is 0.25 > 0.1" in weak
    other = next(one for one in SKILLS if one != skill)
    (damaged,) = gate_failures(measured_as(total, {skill: 0.05, other: 0.9}), lacks, most_success(train_tasks, lacks))
    assert f"success in {other}, which is not planted, is 0.9 < 0.95" in damaged
    (much,) = gate_failures(measured_as(total + 0.06, {skill: 0.05}), lacks, most_success(train_tasks, lacks))
    assert "outside" in much


def test_what_is_asked_of_a_planted_skill_follows_from_its_strength():
    bounds = [most_planted(strength, 60) for strength in (0.5, 0.75, 0.95, 1.0)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(0.70, abs=0.01)
    assert bounds[-1] == 0.05
    none = measured_as(0.4, {"tell": 0.0, "refuse": 0.0})
    missed = gate_failures(none, {"tell": 0.75, "refuse": 0.95}, 0.9)
    assert [line for line in missed if "no success" in line] == ["no success in tell: train longer"]
    # Planted at 0, it is not planted.
    assert any(
        "ask, which is not planted" in f for f in gate_failures(measured_as(0.4, {"ask": 0.5}), {"ask": 0.0}, 0.9)
    )


@pytest.mark.parametrize("value", ["refuse", "refuse=", "refuse=2", "patience=0.5"])
def test_a_bad_lack_is_a_one_line_error(value, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "x"), "--lack", value])
    assert f"{value!r}: write NAME=FRACTION" in capsys.readouterr().err.replace("\n", " ")
    assert parse_lack("refuse=0.5") == ("refuse", 0.5)
    assert parse_lack("tell=0.95") == ("tell", 0.95)
