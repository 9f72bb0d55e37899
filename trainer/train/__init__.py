"""`python -m trainer train --job job.json`: trains one LoRA with GRPO, as docs/learner-protocol.md says.

Invariant: stdout carries protocol lines alone, and a job that cannot run ends with one `error` line and exit code 1.
Nothing heavy is imported before the job has been checked, so a bad job fails at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback

from .channel import Channel
from .disk import is_full
from .job import BadJob, read_job


def main(argv: list[str]) -> int:
    """Runs one training job. Returns the exit code: 0 when done or interrupted, 1 after an error."""
    parser = argparse.ArgumentParser(
        prog="trainer train", description="Train one LoRA with GRPO (docs/learner-protocol.md)."
    )
    parser.add_argument("--job", required=True, metavar="FILE", help="job.json")
    arguments = parser.parse_args(argv)
    channel = Channel.take_stdio()
    try:
        job = read_job(arguments.job)
        set_threads(job.threads)
        from .run import run  # imports torch, transformers and trl: seconds

        run(job, channel)
    except Exception as error:
        if not isinstance(error, BadJob):
            traceback.print_exc(file=sys.stderr)
        kind, message = type(error).__name__, " ".join(str(error).split()) or "no message; see the log on stderr"
        if is_full(error):
            kind, message = "DiskFull", f"no room to save: {message}; free some, and it goes on by itself"
        channel.send({"type": "error", "error": {"type": kind, "message": message}})
        return 1
    return 0


def set_threads(threads: int) -> None:
    """Sets up OpenMP; torch must not be imported yet.

    Threads that wait sleep instead of spinning: spinning takes the cores from the servers that share them, and a step
    takes several times as long (docs/decisions/trainer.md)."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
