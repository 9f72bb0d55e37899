"""`python -m trainer fit-router --in outcomes.json --out router.json`: fits the router on the train split's outcomes.

Invariant: the same input and seed give the same file; it is written whole or not at all; a bad input is refused
(trainer/command.py). Stdout has a line {"done": 3, "total": 11} for every model that is fitted."""

from __future__ import annotations

import argparse
from pathlib import Path

from trainer.command import refused, tell_progress, write_json

from .outcomes import BadOutcomes, read_outcomes


def main(argv: list[str]) -> int:
    """Fits and writes a router. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="trainer fit-router", description="Fit the router from an outcome matrix.")
    parser.add_argument("--in", dest="source", required=True, metavar="FILE", help="outcomes.json")
    parser.add_argument("--out", required=True, metavar="FILE", help="router.json, made anew")
    parser.add_argument("--folds", type=int, default=5, help="folds of the cross-validation (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="of the folds (default 1)")
    options = parser.parse_args(argv)
    try:
        if options.folds < 2:
            raise BadOutcomes(f"--folds {options.folds}: cross-validation needs at least 2")
        outcomes = read_outcomes(Path(options.source))
        from .fit import fit_router  # imports scikit-learn: seconds

        router = fit_router(outcomes, folds=options.folds, seed=options.seed, progress=tell_progress)
    except BadOutcomes as error:
        return refused("fit-router", error)
    write_json(Path(options.out), router)
    return 0
