"""metrics.jsonl: a line for every finished step. Invariant: after a resume it holds whole lines of finished steps
alone, in order and each once, whatever a crash or a damaged disk has left there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"


def append_metrics(path: Path, line: dict[str, Any]) -> None:
    """Adds a step's line, durably: the checkpoint that comes after it must not know more than it."""
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def cut_metrics(path: Path, step: int) -> None:
    """Cuts the file back to the finished steps. A killed run may have written more than its checkpoint, or half a line;
    a line that can't be read is dropped, and said on stderr: what is lost is a point of a curve."""
    kept: dict[int, bytes] = {}
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for line in lines:
        number = _step_of(line)
        if number is not None and 1 <= number <= step:
            kept[number] = line
    lost = [number for number in range(1, step + 1) if number not in kept]
    if lost:
        print(f"{path} holds no whole line of steps {', '.join(map(str, lost))}; they are left out", file=sys.stderr)
    ordered = [kept[number] for number in sorted(kept)]
    if ordered == lines and path.exists():
        return
    aside = path.with_suffix(".partial")
    try:
        aside.write_bytes(b"".join(ordered))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _step_of(line: bytes) -> int | None:
    """The step that a whole line is of."""
    try:
        step = json.loads(line)["step"] if line.endswith(b"\n") else None
    except (ValueError, KeyError, TypeError):
        return None
    return step if type(step) is int else None
