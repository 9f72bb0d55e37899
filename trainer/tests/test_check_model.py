"""What is told of a base model before anything is spent: the same as the trainer says once it loads it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer.command import REFUSED
from trainer.model_folder import BadModel, check_files, empty_model, lora_modules
from trainer.model_folder import check_model_main as main
from trainer.peft_folder import read_peft_folder
from trainer.tests.conftest import save_tiny_moe
from trainer.tests.train_harness import LORA, ROOT, make_job
from trainer.train.job import BadJob, parse_job
from trainer.train.model import build_model

WANTED = [
    *(["q_proj"], ["self_attn.o_proj"], ["0.self_attn.q_proj"], ["proj"], ["lm_head"], ["q_norm"]),
    *(["gate_proj"], ["experts"], ["experts.0.gate_proj"], ["gate_up_proj"], ["gate"]),
    ["q_proj", "up_proj", "down_proj"],
]


@pytest.fixture(scope="session")
def tiny_moe_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_moe(tmp_path_factory.mktemp("moe"))


def ask(tmp_path: Path, model: Path, wanted: list[str]) -> tuple[int, str, dict | None]:
    """Exit code, stderr and answer of the command."""
    source, out = tmp_path / "question.json", tmp_path / "modules.json"
    source.write_text(json.dumps({"model": str(model), "target_modules": wanted}))
    command = [sys.executable, "-m", "trainer", "check-model", "--in", str(source), "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return ended.returncode, ended.stderr, json.loads(out.read_text()) if out.exists() else None


def test_experts_are_one_by_one_in_the_checkpoint_and_no_modules_of_the_model(tiny_moe_dir: Path) -> None:
    header = (tiny_moe_dir / "model.safetensors").read_bytes()[:20_000]
    assert b"mlp.experts.0.gate_proj.weight" in header
    found, unknown, choices = lora_modules(empty_model(str(tiny_moe_dir)), ["v_proj", "gate_proj"])
    assert (list(found), unknown) == (
        ["model.layers.0.self_attn.v_proj", "model.layers.1.self_attn.v_proj"],
        ["gate_proj"],
    )
    assert choices == ["k_proj", "o_proj", "q_proj", "v_proj"]


@pytest.mark.parametrize("wanted", WANTED, ids=",".join)
@pytest.mark.parametrize("kind", ["moe", "lfm2"])
def test_it_refuses_what_the_trainer_refuses(
    kind: str, wanted: list[str], tiny_moe_dir: Path, tiny_model_dir: Path, tmp_path: Path
) -> None:
    model = tiny_moe_dir if kind == "moe" else tiny_model_dir
    found, unknown, choices = lora_modules(empty_model(str(model)), wanted)
    job = parse_job(make_job(model, tmp_path, lora={**LORA, "target_modules": wanted}))
    if unknown:
        with pytest.raises(BadJob, match=f"{unknown[0]!r}.*; choose from {', '.join(choices)}"):
            build_model(job)
    else:
        layers = {name: module for name, module in build_model(job).named_modules() if hasattr(module, "lora_A")}
        assert {name.removeprefix("base_model.model.") for name in layers} == set(found)


def test_the_command_tells_names_and_sizes(tiny_moe_dir: Path, tmp_path: Path) -> None:
    assert ask(tmp_path, tiny_moe_dir, ["k_proj", "down_proj"]) == (
        0,
        "",
        {
            "modules": [{"name": f"model.layers.{n}.self_attn.k_proj", "in": 32, "out": 16} for n in (0, 1)],
            "unknown": ["down_proj"],
            "choices": ["k_proj", "o_proj", "q_proj", "v_proj"],
        },
    )


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[:-100], r"is not whole: it has [\d,]+ bytes, and by its header [\d,]+; download it anew"),
        (lambda text: text[:100], r"is not whole: it has 100 bytes"),
        (lambda _: b"", r"is not whole: it has 0 bytes"),
        (lambda text: text + b"more", r"is not whole"),
        (lambda _: b"<!doctype html><html>", r"is no safetensors file: it begins with b'<!doctype"),
        (lambda _: (4).to_bytes(8, "little") + b"{{}}", r"is damaged: its header is not that"),
        (lambda _: POINTER.encode(), r"is a git-lfs pointer and not the file itself; run `git lfs pull` in "),
    ],
)
def test_a_file_that_is_not_whole_is_named(
    tiny_model_dir: Path, tmp_path: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model_dir, model)
    check_files(model)
    weights = model / "model.safetensors"
    weights.write_bytes(spoil(weights.read_bytes()))
    with pytest.raises(BadModel, match=f"^{weights} {said}"):
        check_files(model)
    with pytest.raises(BadJob, match=f"^base_model {weights} {said}"):
        build_model(parse_job(make_job(model, tmp_path / "out")))
    code, stderr, answer = ask(tmp_path, model, ["q_proj"])
    assert (code, answer) == (REFUSED, None)
    assert stderr.startswith(f"check-model: {weights} ")
    assert stderr.count("\n") == 1
    serve = [sys.executable, "-m", "trainer", "serve", "--model", str(model), "--port", "0"]
    served = subprocess.run(serve, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert served.returncode == 1
    assert served.stderr == stderr.replace("check-model: ", "serve: ")


def test_any_file_may_be_a_pointer(tiny_model_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model_dir, tmp_path / "model")
    (tmp_path / "model/tokenizer.json").write_text(POINTER)
    with pytest.raises(BadModel, match=r"tokenizer\.json is a git-lfs pointer"):
        check_files(tmp_path / "model")


def test_a_configuration_that_is_no_language_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "nothing"}')
    code, stderr, _ = ask(tmp_path, model, ["q_proj"])
    assert code == REFUSED
    assert stderr.startswith(f"check-model: {model}/config.json: ")
    assert stderr.endswith("; name a causal language model that transformers knows\n")
    assert stderr.count("\n") == 1


def test_a_blank_adapter_has_the_modules_and_the_rank_and_changes_nothing(tiny_model_dir: Path, tmp_path: Path) -> None:
    source, out, folder = tmp_path / "question.json", tmp_path / "modules.json", tmp_path / "blank"
    question = {"model": str(tiny_model_dir), "target_modules": ["q_proj", "w1"]}
    source.write_text(json.dumps(question | {"blank": {"rank": 24, "output_dir": str(folder)}}))
    assert main(["--in", str(source), "--out", str(out)]) == 0
    adapter = read_peft_folder(folder)
    assert list(adapter.factors) == sorted(one["name"] for one in json.loads(out.read_text())["modules"])
    assert adapter.config.r == 24 and all(not a.any() and not b.any() for a, b in adapter.factors.values())
