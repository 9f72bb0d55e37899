"""`python -m trainer merge --job merge.json`: makes one PEFT adapter out of several weighted ones.

Invariant: the merged adapter changes the base model by the weighted sum of its parts' changes; the same job gives the
same bytes, written whole or not at all; a job that cannot be merged is refused (trainer/refusal.py)."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.inputs import read_input
from trainer.refusal import refused

from .job import BadMerge, MergeJob


def main(argv: list[str]) -> int:
    """Merges. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="trainer merge", description="Merge PEFT adapters into one, with weights.")
    parser.add_argument(
        "--job", required=True, metavar="FILE", help='{"adapters": [{"path", "weight"}, ...], "output_dir"}'
    )
    options = parser.parse_args(argv)
    try:
        job = read_input(MergeJob, Path(options.job), name="--job", refusal=BadMerge)
        from .cat import merge  # imports torch: seconds

        merge(job)
    except BadMerge as error:
        return refused("merge", error)
    return 0
