"""The files of a learner: checkpoints, and metrics.jsonl with a line for every finished step.

Invariants: a folder under its final name that passes `is_whole` was written to the end. A checkpoint is written under
`.partial`, flushed to disk, given a manifest with a checksum of every file, and renamed: a kill at any moment leaves
the last whole one in place, and a torn file after a power loss is seen by its checksum. After a resume metrics.jsonl
holds whole lines of finished steps alone, in order and each once, even after a crash or on a damaged disk."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.command import BadInput, sha256, write_whole

from .job import Job

MANIFEST, METRICS = "manifest.json", "metrics.jsonl"

LEAVE_SECONDS = 12
"""The wait for a trainer whose worker was killed, which ends after its step. It is shorter than the time after which
a worker assumes a hang (16 s at the shortest workers.heartbeatSeconds), so that FolderBusy is reported."""


class FolderBusy(RuntimeError):
    """Another trainer works in the folder."""


@contextlib.contextmanager
def only_trainer(output: Path, *, wait: float = LEAVE_SECONDS) -> Iterator[None]:
    """Makes the folder and works in it alone. Raises FolderBusy if another trainer has not left it after `wait`
    seconds."""
    output.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wait
    with (output / ".lock").open("a+") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    lock.seek(0)
                    raise FolderBusy(
                        f"output_dir {output}: the trainer with pid {lock.read() or 'unknown'} works there; "
                        "end it if its worker is gone and it hangs"
                    ) from None
                time.sleep(0.2)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def partial_dir(output: Path) -> Path:
    """Returns the folder in which checkpoints are written before they get their final name."""
    return output / ".partial"


@contextlib.contextmanager
def new_checkpoint(output: Path, step: int, *, fingerprint: str) -> Iterator[tuple[Path, Path]]:
    """Yields a folder to fill, and the one that it is once it has its manifest and its final name, durably. One that
    could not be written leaves nothing behind. `fingerprint` is the job's."""
    final = output / f"checkpoint-{step}"
    partial = partial_dir(output) / final.name
    try:
        yield partial, final
        files = {str(file.relative_to(partial)): sha256(file) for file in partial.rglob("*") if file.is_file()}
        (partial / MANIFEST).write_text(json.dumps({"job": fingerprint, "files": files}, indent=1))
        for path in (*map(partial.joinpath, files), partial / MANIFEST, partial):
            _sync(path)
        shutil.rmtree(final, ignore_errors=True)  # one that is not whole: a whole one is never written again
        partial.rename(final)
        _sync(final.parent)
    except Exception:
        shutil.rmtree(partial, ignore_errors=True)  # on a full disk, its room is wanted
        raise


def is_whole(folder: Path) -> bool:
    """True if every file that the manifest lists is there, byte for byte."""
    try:
        files = json.loads((folder / MANIFEST).read_text())["files"]
        return all(sha256(folder / name) == digest for name, digest in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def whole_ones(output: Path) -> Iterator[tuple[int, Path]]:
    """(finished steps, folder) of every whole checkpoint, the newest first."""
    matches = ((re.fullmatch(r"checkpoint-(\d+)", path.name), path) for path in output.iterdir())
    for step, path in sorted(((int(match[1]), path) for match, path in matches if match), reverse=True):
        if is_whole(path):
            yield step, path


def policy_of(adapter: Path) -> dict[str, str]:
    """Returns the policy as messages name it: the base model with this adapter."""
    return {"adapter": str(adapter)}


def resume_point(job: Job) -> tuple[int, Path | None]:
    """Returns (finished steps, folder) of the checkpoint from which a training resumes, or (0, None), and cuts the
    metrics there. Raises BadInput for a checkpoint of another job."""
    output = job.output
    shutil.rmtree(partial_dir(output), ignore_errors=True)
    step, checkpoint = next(whole_ones(output), (0, None))
    if checkpoint and json.loads((checkpoint / MANIFEST).read_text())["job"] != job.fingerprint():
        raise BadInput(f"output_dir {job.output_dir}: holds {checkpoint.name} of another job; name an empty folder")
    if step > job.steps:
        raise BadInput(f"steps {job.steps}: {checkpoint} is already past it; raise steps or name an empty folder")
    cut_metrics(output, step)
    return step, checkpoint


def _sync(path: Path) -> None:
    """Flushes a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_metrics(output: Path, step: int, metrics: dict[str, Any]) -> None:
    """Adds a step's line, durably: the checkpoint that comes after it must not know more than it."""
    with (output / METRICS).open("a") as file:
        file.write(json.dumps({"step": step, **metrics}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def cut_metrics(output: Path, step: int) -> None:
    """Cuts the file back to the finished steps. A killed run may have written more than its checkpoint, or half a line;
    a line that can't be read is dropped: what is lost is a point of a curve."""
    path = output / METRICS
    kept: dict[int, bytes] = {}
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        try:
            if line.endswith(b"\n") and (number := json.loads(line)["step"]) <= step:
                kept[number] = line
        except (ValueError, KeyError, TypeError):
            continue
    write_whole(path, b"".join(kept.values()))
