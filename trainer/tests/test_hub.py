"""Base models that are named as on a model hub, from a server on this machine that speaks its protocol."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trainer.model_folder import base_id
from trainer.tests.hub_server import COMMIT, HubServer


@pytest.fixture
def hub(tiny_model_dir: Path, tmp_path: Path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in tiny_model_dir.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "pytorch_model.bin").write_bytes(b"other weights")
    server = HubServer(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def start(server: HubServer, tmp_path: Path, **question: object) -> subprocess.Popen:
    asked = {"hub": "owner/tiny", "revision": "main", "download": True, **question}
    (tmp_path / "question.json").write_text(json.dumps(asked))
    files = ("--in", str(tmp_path / "question.json"), "--out", str(tmp_path / "answer.json"))
    env = {**os.environ, "HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "0"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "trainer", "fetch-model", *files], env=env, **pipes)


def fetched(server: HubServer, tmp_path: Path, **question: object) -> tuple[int, str, str]:
    process = start(server, tmp_path, **question)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def snapshot(tmp_path: Path) -> Path:
    return tmp_path / "cache/hub/models--owner--tiny/snapshots" / COMMIT


def downloads(hub: HubServer, name: str) -> list[str | None]:
    return [span for method, file, span in hub.requests if method == "GET" and file == name]


def test_size_and_licence_are_known_before_anything_is_downloaded(hub, tmp_path):
    assert fetched(hub, tmp_path, download=False)[0] == 0
    sizes = {file.name: file.stat().st_size for file in hub.folder.iterdir()}
    wanted = sum(sizes.values()) - sizes["pytorch_model.bin"]
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer == {"commit": COMMIT, "bytes": wanted, "license": "apache-2.0"}
    assert hub.requests == [] and not snapshot(tmp_path).exists()


def test_a_model_is_downloaded_with_progress_and_its_commit_is_its_id(hub, tmp_path):
    code, out, _ = fetched(hub, tmp_path)
    assert code == 0 and not (snapshot(tmp_path) / "pytorch_model.bin").exists()
    last = json.loads(out.splitlines()[-1])
    assert last["done"] == last["total"] == json.loads((tmp_path / "answer.json").read_text())["bytes"]
    assert base_id(snapshot(tmp_path)) == f"owner/tiny@{COMMIT[:12]}"
    assert (snapshot(tmp_path) / "../../refs/main").read_text() == COMMIT
    for file in snapshot(tmp_path).iterdir():
        assert file.read_bytes() == (hub.folder / file.name).read_bytes()


def test_a_killed_download_resumes_with_the_missing_files(hub, tmp_path):
    stalled, go_on = threading.Event(), threading.Event()

    def half(handler, body):
        handler.wfile.write(body[: len(body) // 2])
        handler.wfile.flush()
        stalled.set()
        go_on.wait(60)

    hub.send, whole = half, hub.send
    process = start(hub, tmp_path)
    assert stalled.wait(60)
    process.kill()
    process.wait()
    go_on.set()
    assert not (snapshot(tmp_path) / "model.safetensors").exists()
    hub.send = whole
    assert fetched(hub, tmp_path)[0] == 0
    assert len(downloads(hub, "config.json")) == 1 and len(downloads(hub, "model.safetensors")) == 2
    assert (snapshot(tmp_path) / "model.safetensors").read_bytes() == (hub.folder / "model.safetensors").read_bytes()


def test_weights_that_are_not_the_listed_ones_are_removed(hub, tmp_path):
    hub.send, whole = lambda handler, body: handler.wfile.write(bytes(len(body))), hub.send
    code, _, err = fetched(hub, tmp_path)
    assert code == 3 and "model.safetensors" in err and not (snapshot(tmp_path) / "model.safetensors").exists()
    hub.send = whole
    assert fetched(hub, tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("question", "field"),
    [({"hub": "owner/missing"}, "baseModel.hub"), ({"revision": "v9"}, "baseModel.revision")],
)
def test_a_model_that_the_hub_lacks_is_refused(hub, tmp_path, question, field):
    code, _, err = fetched(hub, tmp_path, **question)
    assert code == 3 and field in err and len(err.splitlines()) == 1


def test_a_hub_that_is_not_reached_may_be_tried_again(hub, tmp_path):
    hub.server_close()
    code, _, err = fetched(hub, tmp_path)
    assert code == 1 and "HF_ENDPOINT" in err.splitlines()[-1]
