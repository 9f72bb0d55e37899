"""`python -m trainer sft --job job.json`: trains one LoRA on conversations that somebody brings, as
docs/learner-protocol.md says.

Invariant: it asks for no rollouts. Nothing heavy is imported before the job has been checked, so a bad job fails at
once."""

from __future__ import annotations

from trainer.train import set_threads
from trainer.train.channel import Channel, learner_main

from .job import read_job


def main(argv: list[str]) -> int:
    """Runs one training. Returns the exit code: 0 when done or interrupted, 1 after an error."""

    def learn(path: str, channel: Channel) -> None:
        job = read_job(path)
        set_threads(job.threads)
        from .run import run  # imports torch, transformers and trl: seconds

        run(job, channel)

    return learner_main(
        argv, learn, prog="trainer sft", description="Train one LoRA on conversations (docs/learner-protocol.md)."
    )
