"""`python -m trainer sft --job job.json`: trains one LoRA on conversations that somebody brings, as
docs/learner-protocol.md says.

Invariant: it asks for no rollouts. Nothing heavy is imported before the job has been checked, so a bad job fails at
once."""

from __future__ import annotations

import argparse

from trainer.train import set_threads
from trainer.train.channel import Channel, run_learner

from .job import read_job


def main(argv: list[str]) -> int:
    """Runs one training. Returns the exit code: 0 when done or interrupted, 1 after an error."""
    parser = argparse.ArgumentParser(
        prog="trainer sft", description="Train one LoRA on conversations (docs/learner-protocol.md)."
    )
    parser.add_argument("--job", required=True, metavar="FILE", help="job.json")
    arguments = parser.parse_args(argv)

    def learn(channel: Channel) -> None:
        job = read_job(arguments.job)
        set_threads(job.threads)
        from .run import run  # imports torch, transformers and trl: seconds

        run(job, channel)

    return run_learner(learn)
