"""`python -m trainer weigh-adapters --job weigh.json`: one adapter out of several, each with a weight in every layer.

Invariant: only the weights are learned, from 1 on; where they do not raise the likelihood of held-out successes, they
are 1. The same job gives the same bytes, written whole or not at all; a bad job is refused (trainer/refusal.py).
Stdout has a line {"done": 3, "total": 40} for every step."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from trainer.inputs import read_input
from trainer.refusal import refused

from .job import BadWeighing, WeighJob


def main(argv: list[str]) -> int:
    """Weighs. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="trainer weigh-adapters", description="Learn weights of adapters on successful rollouts, and merge them."
    )
    parser.add_argument(
        "--job", required=True, metavar="FILE", help="base model, adapters, rows (weigh_adapters/job.py)"
    )
    options = parser.parse_args(argv)
    try:
        job = read_input(WeighJob, Path(options.job), name="--job", refusal=BadWeighing)
        from .weigh import weigh  # imports torch: seconds

        weigh(job, progress=lambda done, total: print(json.dumps({"done": done, "total": total}), flush=True))
    except BadWeighing as error:
        return refused("weigh-adapters", error)
    return 0
