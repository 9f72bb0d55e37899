"""`python -m trainer weigh-adapters --job weigh.json`: one policy out of several adapters behind a gate
inside the model (trainer/gates.py).

Invariant: only the gate is learned, from zero; where it does not raise the likelihood of held-out successes, it stays
there. The same job gives the same bytes, written whole or not at all; a bad
job is refused (trainer/refusal.py).
Stdout has a line {"done": 3, "total": 40} for every step."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from trainer.inputs import read_input
from trainer.refusal import refused

from .job import BadWeighing, WeighJob


def main(argv: list[str]) -> int:
    """Trains the gate. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="trainer weigh-adapters",
        description="Train a gate over adapters on successful rollouts.",
    )
    parser.add_argument(
        "--job", required=True, metavar="FILE", help="base model, adapters, gate, rows (weigh_adapters/job.py)"
    )
    options = parser.parse_args(argv)
    try:
        job = read_input(WeighJob, Path(options.job), name="--job", refusal=BadWeighing)
        from .weigh import weigh  # imports torch: seconds

        weigh(job, progress=lambda done, total: print(json.dumps({"done": done, "total": total}), flush=True))
    except BadWeighing as error:
        return refused("weigh-adapters", error)
    return 0
