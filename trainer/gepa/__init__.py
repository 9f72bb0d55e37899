"""`python -m trainer gepa --job job.json`: improves a prompt with GEPA (docs/gepa.md), as a learner of
docs/learner-protocol.md.

Invariant: it knows nothing but its job and what its worker answers, and has no choice of its own: the same job and the
same answers lead through the same requests, so that a search that was killed is run again from its beginning."""

from __future__ import annotations

import argparse
import sys
import traceback

from trainer.train.channel import Channel
from trainer.train.disk import is_full
from trainer.train.job import BadJob

from .job import read_job


def main(argv: list[str]) -> int:
    """Runs one search. Returns the exit code: 0 when done or interrupted, 1 after an error."""
    parser = argparse.ArgumentParser(prog="trainer gepa", description="Improve a prompt with GEPA (docs/gepa.md).")
    parser.add_argument("--job", required=True, metavar="FILE", help="job.json")
    arguments = parser.parse_args(argv)
    channel = Channel.take_stdio()
    try:
        job = read_job(arguments.job)
        from .search import search

        search(job, channel)
    except Exception as error:
        if not isinstance(error, BadJob):
            traceback.print_exc(file=sys.stderr)
        kind, message = type(error).__name__, " ".join(str(error).split()) or "no message; see the log on stderr"
        if is_full(error):
            kind, message = "DiskFull", f"no room to save: {message}; free some, and it goes on by itself"
        channel.send({"type": "error", "error": {"type": kind, "message": message}})
        return 1
    return 0
