"""Properties of a base model's folder: its id, complete files, its modules, log-probs."""

import hashlib
import shutil
from pathlib import Path
from statistics import median

import pytest
import torch
from transformers import AutoModelForCausalLM

from trainer.__main__ import main
from trainer.command import REFUSED, BadInput
from trainer.model_folder import (
    FINGERPRINT_IDS,
    Question,
    base_id,
    check_files,
    empty_model,
    fingerprint,
    lora_modules,
)
from trainer.peft_folder import read_peft_folder
from trainer.tests.train_harness import LORA, ROOT, make_job, parse_job
from trainer.train.model import build_model, save_adapter

BASE = ROOT / "models" / "base"


@pytest.fixture
def model(tmp_path):
    return Path(shutil.copytree(BASE, tmp_path / "m" / "base"))


@pytest.fixture
def lora_of(ask):
    """Returns a function that runs check-model for modules."""
    return lambda model, modules: ask("check-model", {"model": str(model), "target_modules": modules})


def test_the_id_is_the_folders_name_and_a_hash_of_all_files(model, tmp_path):
    whole = hashlib.sha256()
    for path in sorted(model.iterdir()):
        whole.update(f"{path.name}\n".encode() + path.read_bytes())
    assert base_id(model) == f"base@{whole.hexdigest()[:12]}" == base_id(BASE)
    (model / "notes").mkdir()  # of the files of the folder alone
    links = tmp_path / "links" / "base"
    links.mkdir(parents=True)
    for path in model.iterdir():
        (links / path.name).symlink_to(path)
    assert base_id(links) == base_id(model) == base_id(BASE)
    (model / "generation_config.json").write_text("{}")
    assert base_id(model) != base_id(BASE)


WANTED = [
    *(["q_proj"], ["self_attn.o_proj"], ["0.self_attn.q_proj"], ["proj"], ["lm_head"], ["q_norm"]),
    *(["gate_proj"], ["experts"], ["experts.0.gate_proj"], ["gate_up_proj"], ["gate"]),
    ["q_proj", "up_proj", "down_proj"],
]


@pytest.mark.parametrize("kind", ["moe", "lfm2"])
def test_it_refuses_the_modules_that_the_trainer_refuses(kind, request, tmp_path):
    model = request.getfixturevalue(f"tiny_{kind}_dir")
    for wanted in WANTED:
        found, unknown, choices = lora_modules(empty_model(str(model)), wanted)
        job = parse_job(make_job(model, tmp_path, lora={**LORA, "target_modules": wanted}))
        if unknown:
            with pytest.raises(BadInput, match=f"{unknown[0]!r}.*; choose from {', '.join(choices)}"):
                build_model(job)
        else:
            save_adapter(build_model(job), tmp_path / "adapter")
            assert set(read_peft_folder(tmp_path / "adapter").factors) == set(found)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"


WEIGHTS = "model.safetensors"


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        (WEIGHTS, lambda text: text[:-100], "is not whole: .*; download it again"),
        (WEIGHTS, lambda text: text[:100], "is not whole"),
        (WEIGHTS, lambda _: b"", "is not whole"),
        (WEIGHTS, lambda text: text + b"more", "is not whole"),
        (WEIGHTS, lambda _: b"<!doctype html><html>", "is not whole"),
        (WEIGHTS, lambda _: POINTER, "is a git-lfs pointer and not the file itself; run `git lfs pull` in "),
        ("tokenizer.json", lambda _: POINTER, "is a git-lfs pointer"),
    ],
)
def test_a_file_that_is_not_whole_is_named(tiny_model_dir, tmp_path, lora_of, capsys, name, spoil, said):
    model = Path(shutil.copytree(tiny_model_dir, tmp_path / "model"))
    check_files(model)
    file = model / name
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(BadInput, match=f"^base_model {file} {said}"):
        build_model(parse_job(make_job(model, tmp_path / "out")))
    assert lora_of(model, ["q_proj"]) == (REFUSED, None)
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"check-model: {file} ") and stderr.count("\n") == 1
    assert main(["serve", "--model", str(model), "--port", "0"]) == 1
    assert capsys.readouterr().err == stderr.replace("check-model: ", "serve: ")


def test_a_blank_adapter_has_the_modules_and_the_rank_and_changes_nothing(tiny_model_dir, tmp_path, ask):
    blank = {"rank": 24, "output_dir": str(tmp_path / "blank")}
    question = {"model": str(tiny_model_dir), "target_modules": ["q_proj", "w1"], "adapter": blank}
    code, answer = ask("check-model", question)
    adapter = read_peft_folder(tmp_path / "blank")
    assert code == 0 and list(adapter.factors) == sorted(one["name"] for one in answer["modules"])
    assert adapter.config.r == 24 and all(not a.any() and not b.any() for a, b in adapter.factors.values())


def test_rounding_moves_a_fingerprint_little_and_other_weights_move_it_far(tmp_path):
    model = AutoModelForCausalLM.from_pretrained(BASE)
    own = fingerprint(Question(model=str(BASE)))
    assert len(own["ids"]) == FINGERPRINT_IDS == len(own["logprobs"]) + 1

    def off_by(other: torch.nn.Module, name: str) -> float:
        other.save_pretrained(tmp_path / name)
        theirs = fingerprint(Question(model=str(tmp_path / name)))
        assert own["ids"] == theirs["ids"]
        return median(abs(p - q) for p, q in zip(own["logprobs"], theirs["logprobs"], strict=True))

    for n in (1, 7, FINGERPRINT_IDS - 1):  # each given those before it
        logits = model(torch.tensor([own["ids"][:n]])).logits[0, -1]
        assert own["logprobs"][n - 1] == pytest.approx(logits.log_softmax(-1)[own["ids"][n]].item(), abs=1e-3)
    assert off_by(model, "same") == 0
    assert 0 < off_by(AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.bfloat16), "half") < 0.1
    torch.manual_seed(1)
    assert off_by(AutoModelForCausalLM.from_config(model.config), "random") > 1
