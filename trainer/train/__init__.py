"""`python -m trainer train --job job.json`: trains one LoRA on rollouts, as docs/learner-protocol.md says.

Invariant: stdout carries protocol lines alone, and a job that cannot run ends with one `error` line and exit code 1.
Nothing heavy is imported before the job has been checked, so a bad job fails at once.
"""

from __future__ import annotations

import os

from .channel import Channel, learner_main
from .job import read_job


def main(argv: list[str]) -> int:
    """Runs one training job. Returns the exit code: 0 when done or interrupted, 1 after an error."""

    def learn(path: str, channel: Channel) -> None:
        job = read_job(path)
        set_threads(job.threads)
        from .run import run  # imports torch, transformers and trl: seconds

        run(job, channel)

    return learner_main(
        argv, learn, prog="trainer train", description="Train one LoRA on rollouts (docs/learner-protocol.md)."
    )


def set_threads(threads: int) -> None:
    """Sets up OpenMP; torch must not be imported yet.

    Threads that wait sleep instead of spinning: spinning takes the cores from the servers that share them, and a step
    takes several times as long (docs/decisions.md)."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
