"""`python -m trainer base-id --in question.json --out id.json`: which base model a folder holds, `<folder>@<hash of all
files>`.

Invariant: another base has another id, also in a folder of the same name; files that have not changed since they were
hashed are not read again where CAMPAIGN_HOME names a home, which keeps what was found."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from trainer.inputs import Closed, read_input
from trainer.refusal import refused

CHUNK_BYTES = 1 << 22

File = list[str | int]
"""Name, inode, size, times of the last change of content and of anything (which no program sets back)."""


class Question(Closed):
    """`model`: the base model's folder."""

    model: str = Field(min_length=1)


class NoModel(ValueError):
    """There is no model in the folder; the message says how to get one."""


def main(argv: list[str]) -> int:
    """Writes {"id"}; tells progress in bytes on stdout. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="trainer base-id", description="Tell which base model a folder holds.")
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help='{"model"}')
    parser.add_argument("--out", required=True, metavar="FILE", help="the id, made anew")
    options = parser.parse_args(argv)
    try:
        asked = read_input(Question, Path(options.source), name="--in", refusal=NoModel)
        found = base_id(Path(asked.model), _tell)
    except NoModel as error:
        return refused("base-id", error)
    Path(options.out).write_text(json.dumps({"id": found}) + "\n", encoding="utf-8")
    return 0


def base_id(model: Path, progress: Callable[[int, int], None] | None = None) -> str:
    """`progress` is told how many bytes of how many are hashed. Raises NoModel."""
    if not (model / "config.json").is_file():
        fix = 'make one with "make base-model", or name the folder of one'
        raise NoModel(f"base model {model}: no model there (config.json is missing); {fix}")
    folder = model.resolve()
    files = _files(folder)
    kept = _kept()
    digest = kept.get(str(folder), {}).get(json.dumps(files))
    if digest is None:
        digest = _digest(folder, files, progress)
        _keep({**kept, str(folder): {json.dumps(files): digest}})
    return f"{os.path.basename(os.path.abspath(model))}@{digest[:12]}"


def _files(folder: Path) -> list[File]:
    # A folder of a model hub's cache holds links to its files.
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    stats = [(name, (folder / name).stat()) for name in names]
    return [[name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for name, stat in stats]


def _digest(folder: Path, files: list[File], progress: Callable[[int, int], None] | None) -> str:
    whole, done = hashlib.sha256(), 0
    total = sum(int(size) for _, _, size, *_ in files)
    for name, *_ in files:
        whole.update(f"{name}\n".encode())
        with (folder / str(name)).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                whole.update(chunk)
                done += len(chunk)
                if progress:
                    progress(done, total)
    return whole.hexdigest()


def _tell(done: int, total: int) -> None:
    print(json.dumps({"done": done, "total": total}), flush=True)


def _kept() -> dict[str, dict[str, str]]:
    """What was found before, by folder and its files; nothing where it can't be read."""
    try:
        found = json.loads(_place().read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}


def _keep(found: dict[str, dict[str, str]]) -> None:
    """Others may do so at once: what one of them forgets is hashed once more."""
    with contextlib.suppress(KeyError, OSError):
        place = _place()
        aside = place.with_name(f"{place.name}.{os.getpid()}")
        try:
            aside.write_text(json.dumps(found), encoding="utf-8")
            os.replace(aside, place)
        finally:
            aside.unlink(missing_ok=True)


def _place() -> Path:
    """Raises KeyError where no home is named."""
    return Path(os.environ["CAMPAIGN_HOME"]) / "base-ids.json"
