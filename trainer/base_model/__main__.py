"""`python -m trainer.base_model --out models/base --lack refuse=0.75`: makes, measures and gates a base model."""

import argparse
import json
import sys
from pathlib import Path

from trainer.base_model.build import Recipe, build

DEFAULT_LACKS = {"complete_all": 0.75, "refuse": 0.75, "tell": 0.75}
SKILLS = ("complete_all", "refuse", "choose", "tell", "compute", "ask")


def parse_lack(value: str) -> tuple[str, float]:
    """`NAME=FRACTION`; raises argparse's error with the value and the fix."""
    name, _, fraction = value.partition("=")
    try:
        number = float(fraction)
    except ValueError:
        number = -1.0
    if name not in SKILLS or not 0 <= number <= 1:
        known = ", ".join(SKILLS)
        raise argparse.ArgumentTypeError(f"{value!r}: write NAME=FRACTION, NAME one of {known}, FRACTION from 0 to 1")
    return name, number


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 if the base passed its gates, 1 if not (the folder is written all the same, with what was missed)."""
    parser = argparse.ArgumentParser(prog="python -m trainer.base_model", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument(
        "--lack", type=parse_lack, action="append", metavar="NAME=FRACTION", help="plant a lack; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--foundation-rounds",
        type=int,
        nargs="+",
        metavar="STEPS",
        default=Recipe.foundation_rounds,
        help="steps without lacks, by round",
    )
    parser.add_argument("--steps", type=int, default=Recipe.steps, help="steps of a round with the planted lacks")
    parser.add_argument(
        "--cache", type=Path, default=Path(".cache/base_model"), help="keeps the foundation for other bases"
    )
    parser.add_argument(
        "--max-success",
        type=float,
        default=Recipe.max_success,
        help="gate: sampled success on train (default: what the lacks leave, and 0.05)",
    )
    parser.add_argument("--report-every", type=float, default=60, help="seconds between progress lines")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(argv)
    recipe = Recipe(
        lacks=dict(args.lack) if args.lack else DEFAULT_LACKS,
        seed=args.seed,
        foundation_rounds=tuple(args.foundation_rounds),
        steps=args.steps,
        max_success=args.max_success,
    )
    record = build(
        recipe, out=args.out, cache=args.cache, device=args.device, threads=args.threads, report_every=args.report_every
    )
    print(json.dumps(record, indent=1))
    for failure in record["gate_failures"]:
        print(f"base_model: gate missed: {failure}", file=sys.stderr)
    return 1 if record["gate_failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
