"""The shipped base models: size, tokenizer, and what they can do in the real environment."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trainer.base_model import conversation, shop, tokenizer
from trainer.base_model.__main__ import SKILLS, main, parse_lack
from trainer.base_model.measure import MIN_SUCCESS, gate_failures, measure
from trainer.base_model.play import Rollout, play

ROOT = Path(__file__).parents[2]
BASES = sorted(file.parent for file in (ROOT / "models").glob("*/base.json"))
DEFAULT = ROOT / "models/base"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="plays the environment with node")


@pytest.fixture(scope="module")
def demos() -> list[dict]:
    return list(shop.demonstrations(120, 5, dict.fromkeys(SKILLS, 0.5)))


@pytest.fixture(scope="module")
def tok():
    return AutoTokenizer.from_pretrained(DEFAULT)


@pytest.fixture(scope="module")
def tools(demos) -> list[dict]:
    return demos[0]["environment"]["tools"]


@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_the_shipped_folder_is_small_and_passed_its_gates(folder: Path) -> None:
    record = json.loads((folder / "base.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert 1e6 <= sum(p.numel() for p in model.parameters()) <= 4e6
    assert all(p.dtype == torch.float32 for p in model.parameters())
    limit = 8e6 if folder.name == "base" else 4.2e6
    assert sum(f.stat().st_size for f in folder.iterdir()) <= limit
    assert (
        record["gate_failures"] == [] == gate_failures(record["train_sampled"], record["lacks"], record["max_success"])
    )


@needs_node
@pytest.mark.parametrize("folder", BASES, ids=lambda p: p.name)
def test_it_does_in_the_real_environment_what_base_json_says(folder: Path, tools) -> None:
    record = json.loads((folder / "base.json").read_text())
    lacks = record["lacks"]
    model, tok = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(7)
    with shop.Player() as player:
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
        assert 0 < figure["success"] < 0.6, skill


@needs_node
def test_rendering_gives_back_what_was_sampled(demos, tok, tools) -> None:
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


@needs_node
def test_ids_numbers_and_call_parts_are_one_token_each(tok, tools) -> None:
    text = '<|call|>return_item(item="red lamp", id="i42", refund="25")<|end|>'
    expected = ["<|call|>", 'return_item(item="', "red", "lamp", '", id="', "i42", '", refund="', "25", '")', "<|end|>"]
    assert tok.tokenize(text) == expected
    assert tok.tokenize(text.replace('", ', '" , ').replace("(", "(  ")) != expected
    for tool in tools:
        assert tok.tokenize(tokenizer.signature(tool)) == [tokenizer.signature(tool)]
        words = tokenizer.schema_words(tool["parameters"]) + tokenizer.schema_words(tool.get("outputSchema", {}))
        assert all(tok.tokenize(word) == [word] for word in words)


def test_arguments_may_be_a_dict_or_json_text(tok, tools) -> None:
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


@needs_node
def test_the_loss_is_on_the_models_own_tokens(demos, tok, tools) -> None:
    ids, mask = conversation.to_row(tok, demos[1]["messages"], tools, prompt=True)
    own = tok.decode([i for i, m in zip(ids, mask, strict=True) if m])
    said = [m for m in demos[1]["messages"] if m["role"] == "assistant"]
    assert own.count("<|end|>") == len(said) and "<|assistant|>" not in own and "<|tool|>" not in own
    short, _ = conversation.to_row(tok, demos[1]["messages"], tools, prompt=False)
    assert ids[-len(short) :] == short and tok.decode(short).startswith("<|user|>")


@needs_node
def test_varied_prompts_keep_the_used_tools_in_order(demos, tools) -> None:
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


def test_gates_name_what_is_missed() -> None:
    def rollouts(skill: str, reward: int, n: int) -> list[Rollout]:
        evaluation = {"reward": reward, "breakdown": {"db": 1, "info": reward}}
        return [Rollout({"id": "t", "skills": [skill]}, [], evaluation) for _ in range(n)]

    good = rollouts("tell", 1, 3) + rollouts("tell", 0, 9) + rollouts("ask", 1, 2)
    assert gate_failures(measure(good), {"tell": 0.75}, 0.5) == []
    assert (
        "success in ask, which is not planted"
        in gate_failures(measure(good + rollouts("ask", 0, 1)), {"tell": 0.75}, 0.5)[0]
    )
    assert any("no success in tell" in f for f in gate_failures(measure(rollouts("tell", 0, 5)), {"tell": 0.75}, 0.5))
    assert any("outside [0.2, 0.5]" in f for f in gate_failures(measure(rollouts("ask", 1, 5)), {}, 0.5))
    assert any("component info" in f for f in gate_failures(measure(rollouts("tell", 0, 5)), {"tell": 1}, 0.5))


@pytest.mark.parametrize("value", ["refuse", "refuse=", "refuse=2", "patience=0.5"])
def test_a_bad_lack_is_a_one_line_error(value: str, capsys, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "x"), "--lack", value])
    assert f"{value!r}: write NAME=FRACTION" in capsys.readouterr().err.replace("\n", " ")
    assert parse_lack("refuse=0.5") == ("refuse", 0.5)
