"""`python -m trainer gepa --job job.json`: improves a prompt with GEPA (docs/arms.md), as a learner of
docs/learner-protocol.md.

Invariant: it knows nothing but its job and what its worker answers, and has no choice of its own: the same job and the
same answers lead through the same requests, so that a search that was killed is run again from its beginning."""

from __future__ import annotations

from trainer.train.channel import Channel, learner_main

from .job import read_job


def main(argv: list[str]) -> int:
    """Runs one search. Returns the exit code: 0 when done or interrupted, 1 after an error."""

    def learn(path: str, channel: Channel) -> None:
        job = read_job(path)
        from .search import search

        search(job, channel)

    return learner_main(argv, learn, prog="trainer gepa", description="Improve a prompt with GEPA (docs/arms.md).")
