"""What a tokenizer does not know of some texts: counted, refused, and without a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from trainer.command import REFUSED
from trainer.model_folder import BadModel, unknown_tokens
from trainer.model_folder import check_tokens_main as main

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "models" / "base"


def folder_of(model: Any, tmp_path: Path) -> Path:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_the_shipped_base_knows_its_own_words_and_no_english() -> None:
    assert unknown_tokens(BASE, ["return the red lamp", "ask for it if missing ."])["unknown"] == 0
    counts = unknown_tokens(BASE, ["You would like a lamp", "Would you ?", ""])
    assert counts["tokens"] == 8
    assert counts["unknown"] == 6
    assert counts["words"][0] == {"word": "You", "count": 1}


def test_words_are_the_most_frequent_first_and_ten_at_most() -> None:
    counts = unknown_tokens(BASE, ["often " * 3 + "twice twice", " ".join(f"w{n}" for n in range(20)), "often"])
    assert counts["words"][:2] == [{"word": "often", "count": 4}, {"word": "twice", "count": 2}]
    assert len(counts["words"]) == 10
    assert counts["unknown"] == counts["tokens"] == 26


def test_unigram_names_its_unknown_token_by_its_place(tmp_path: Path) -> None:
    model = folder_of(models.Unigram([("lamp", -1.0), ("<nothing>", -2.0)], unk_id=1, byte_fallback=False), tmp_path)
    assert unknown_tokens(model, ["lamp desk"]) == {
        "tokens": 2,
        "unknown": 1,
        "words": [{"word": "desk", "count": 1}],
    }


def test_what_has_no_unknown_token_knows_everything(tmp_path: Path) -> None:
    assert unknown_tokens(tmp_path, ["anything"]) == {"tokens": 0, "unknown": 0, "words": []}
    model = folder_of(models.BPE(vocab={"a": 0, "b": 1}, merges=[]), tmp_path)
    assert unknown_tokens(model, ["ab ab c"])["unknown"] == 0


def test_a_broken_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BadModel, match=r"name a base model with a whole tokenizer\.json"):
        unknown_tokens(tmp_path, ["anything"])


def test_a_bad_file_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "texts.json", tmp_path / "tokens.json"
    source.write_text(json.dumps({"model": str(BASE), "texts": "one"}))
    assert main(["--in", str(source), "--out", str(out)]) == REFUSED
    assert capsys.readouterr().err.startswith('check-tokens: texts "one": ')
    assert not out.exists()


def test_it_is_a_command_that_loads_no_model(tmp_path: Path) -> None:
    source, out = tmp_path / "texts.json", tmp_path / "tokens.json"
    source.write_text(json.dumps({"model": str(BASE), "texts": ["the Lamp"]}))
    probe = (
        "import sys; from trainer.__main__ import main;"
        f"code = main(['check-tokens', '--in', {str(source)!r}, '--out', {str(out)!r}]);"
        "print(code, sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "0 []\n"
    assert json.loads(out.read_text()) == {"tokens": 2, "unknown": 1, "words": [{"word": "Lamp", "count": 1}]}
