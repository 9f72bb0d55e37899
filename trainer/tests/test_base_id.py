"""Which base model a folder holds: by all of its files, and read once as long as they stay."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainer import model_folder as module
from trainer.command import REFUSED
from trainer.model_folder import base_id
from trainer.model_folder import base_id_main as main

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "models" / "base"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "m" / "base"
    shutil.copytree(BASE, folder)
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were read."""
    folders: list[Path] = []
    digest = module._digest
    monkeypatch.setattr(module, "_digest", lambda folder, *rest: folders.append(folder) or digest(folder, *rest))
    return folders


def test_the_id_is_the_folders_name_and_a_hash_of_all_files(model: Path) -> None:
    whole = hashlib.sha256()
    for path in sorted(model.iterdir()):
        whole.update(f"{path.name}\n".encode() + path.read_bytes())
    assert base_id(model) == f"base@{whole.hexdigest()[:12]}" == base_id(BASE)
    (model / "notes").mkdir()  # of the files of the folder alone
    assert base_id(model) == base_id(BASE)
    (model / "generation_config.json").write_text("{}")
    assert base_id(model) != base_id(BASE)


def test_a_folder_of_links_is_what_they_lead_to(model: Path, tmp_path: Path) -> None:
    links = tmp_path / "links" / "base"
    links.mkdir(parents=True)
    for path in model.iterdir():
        (links / path.name).symlink_to(path)
    assert base_id(links) == base_id(model)


def test_what_has_not_changed_is_not_read_again(
    model: Path, tmp_path: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAMPAIGN_HOME", str(tmp_path))
    first = base_id(model)
    assert (base_id(model), len(read)) == (first, 1)
    # Of another size, or of the same with its old times: what a program can set back is not all that is looked at.
    weights = model / "model.safetensors"
    times = weights.stat()
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = base_id(model)
    assert changed != first and len(read) == 2
    assert (base_id(model), len(read)) == (changed, 2)


@pytest.mark.parametrize("kept", ["{", "[]", '{"x": 1}'])
def test_what_was_kept_and_is_damaged_is_found_anew(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setenv("CAMPAIGN_HOME", str(tmp_path))
    (tmp_path / "base-ids.json").write_text(kept)
    assert base_id(model) == base_id(model)
    assert str(model) in json.loads((tmp_path / "base-ids.json").read_text())


def test_where_nothing_can_be_kept_it_is_found_all_the_same(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAMPAIGN_HOME", str(model / "none"))
    assert base_id(model) == base_id(BASE)


def test_it_is_a_command_that_tells_progress_and_loads_no_model(tmp_path: Path) -> None:
    source, out = tmp_path / "question.json", tmp_path / "id.json"
    source.write_text(json.dumps({"model": str(BASE)}))
    probe = (
        "import sys; from trainer.__main__ import main;"
        f"code = main(['base-id', '--in', {str(source)!r}, '--out', {str(out)!r}]);"
        "print(code, sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    *told, last = ended.stdout.splitlines()
    assert last == "0 []" and json.loads(out.read_text()) == {"id": base_id(BASE)}
    progress = [json.loads(line) for line in told]
    assert progress[-1]["done"] == progress[-1]["total"] == sum(path.stat().st_size for path in BASE.iterdir())


def test_a_folder_without_a_model_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "question.json", tmp_path / "id.json"
    source.write_text(json.dumps({"model": str(tmp_path)}))
    assert main(["--in", str(source), "--out", str(out)]) == REFUSED
    assert "config.json is missing); make one with" in capsys.readouterr().err
    assert not out.exists()
