"""Checkpoints on disk. Invariant: a folder under its final name that passes `is_whole` was written to the end.

A checkpoint is written under `.partial`, flushed to disk, given a manifest with a checksum of every file, and
renamed. So a kill at any moment leaves the last whole one in place, and a torn file after a power loss is seen by its
checksum."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

MANIFEST = "manifest.json"
_NAME = re.compile(r"checkpoint-(\d+)")


LEAVE_SECONDS = 12
"""How long one whose worker was killed is waited for: it ends with its optimizer step. The next attempt waits again.
Less than what a worker takes for a hang (16 s of the shortest workers.heartbeatSeconds), so that FolderBusy is said."""


class FolderBusy(RuntimeError):
    """Another trainer works in the folder."""


@contextlib.contextmanager
def only_trainer(output_dir: Path, *, wait: float = LEAVE_SECONDS) -> Iterator[None]:
    """Works in the folder alone. Raises FolderBusy if another trainer has not left it after `wait` seconds."""
    with (output_dir / ".lock").open("a+") as lock:
        _take(lock, output_dir, wait)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _take(lock: TextIO, output_dir: Path, wait: float) -> None:
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                lock.seek(0)
                raise FolderBusy(
                    f"output_dir {output_dir}: the trainer with pid {lock.read() or 'unknown'} works there; "
                    "end it if its worker is gone and it hangs"
                ) from None
            time.sleep(0.2)


def partial_dir(output_dir: Path) -> Path:
    """Where checkpoints are written before they have their name."""
    return output_dir / ".partial"


def publish(aside: Path, final: Path, *, fingerprint: str) -> None:
    """Gives a finished folder its manifest and its final name, durably. `fingerprint` is the job's."""
    files = {}
    for file in sorted(path for path in aside.rglob("*") if path.is_file()):
        files[str(file.relative_to(aside))] = _sha256(file)
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    manifest = aside / MANIFEST
    with manifest.open("w") as handle:
        json.dump({"job": fingerprint, "files": files}, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    _sync_dir(aside)
    if final.exists():  # only one that is not whole: a whole one is never written again
        shutil.rmtree(final)
    aside.rename(final)
    _sync_dir(final.parent)


def is_whole(folder: Path) -> bool:
    """True if every file that the manifest lists is there, byte for byte."""
    try:
        files = json.loads((folder / MANIFEST).read_text())["files"]
        return all(_sha256(folder / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def fingerprint_of(folder: Path) -> str:
    """The fingerprint of the job that a whole checkpoint belongs to."""
    return json.loads((folder / MANIFEST).read_text())["job"]


def last_whole(output_dir: Path) -> tuple[int, Path | None]:
    """(finished steps, folder) of the newest whole checkpoint, or (0, None). Removes what was left half-written."""
    shutil.rmtree(partial_dir(output_dir), ignore_errors=True)
    found = [(int(match[1]), path) for path in output_dir.glob("checkpoint-*") if (match := _NAME.fullmatch(path.name))]
    for step, path in sorted(found, reverse=True):
        if is_whole(path):
            return step, path
    return 0, None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while piece := handle.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _sync_dir(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
