"""Makes, measures and gates a base model: the foundation, which lacks nothing and from which every base is made, then
demonstrations with the planted lacks, then measurement and gates.

    python -m trainer.base_model --out models/base --lack refuse=0.75

Invariants: base.json says what the base was made from and what it can do. The foundation does not depend on the lacks,
so bases with different lacks share it; it is made in rounds, each kept in the cache, so that a run that was stopped
goes on after its last whole round."""

import argparse
import hashlib
import json
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel

from trainer.base_model.measure import gate_failures, measure, most_success, needs_training, summary
from trainer.base_model.play import Player, demonstrations, play
from trainer.base_model.text import build_tokenizer
from trainer.base_model.training import Workshop, create, save

SKILLS = ("complete_all", "refuse", "choose", "tell", "compute", "ask")
DEFAULT_LACKS = {"complete_all": 0.75, "refuse": 0.75, "tell": 0.75}
# Most rows go without the system turn: half the tokens, the same look-ups. The last round has it in all, like rollouts.
PROMPT_SHARE = 0.1


@dataclass(frozen=True)
class Recipe:
    """All that determines the weights (on one machine and device), and the gate on success."""

    lacks: dict[str, float]
    seed: int = 1
    # Steps of each round of the foundation, which lacks nothing.
    foundation_rounds: tuple[int, ...] = (2500, 4000, 1500)
    # Steps of one round with the planted lacks; rounds are added, up to so many, until what is not planted is whole.
    steps: int = 700
    planting_rounds: int = 5
    # For each round and for the planting.
    demonstrations: int = 24_000
    batch_size: int = 16
    foundation_learning_rate: float = 3e-3
    learning_rate: float = 1e-3
    # The most that the base may solve of `train`, sampled; None: what the lacks leave (measure.most_success).
    max_success: float | None = None


def build(recipe: Recipe, *, out: Path, cache: Path, device: str, threads: int, report_every: float) -> dict:
    """Writes the base to `out` and returns its record (base.json)."""
    torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.monotonic()
    # The vocabulary is the same for all lacks: what a mistaken demonstration says is among the environment's words.
    head, *clean = demonstrations(5000, recipe.seed, {})
    environment, tools = head["environment"], head["environment"]["tools"]
    tokenizer = build_tokenizer(environment, [*head["words"], *(m["content"] for d in clean for m in d["messages"])])
    with Player() as player:
        workshop = Workshop(player, tools, tokenizer, recipe.batch_size, recipe.seed, report_every)
        model = foundation(workshop, environment, recipe, cache, device)
        tasks = player.tasks("train", "train", 400)
        for number in range(recipe.planting_rounds):
            _, *planted = demonstrations(recipe.demonstrations, recipe.seed + 1000 + 10 * number, recipe.lacks)
            loss = workshop.train(model, workshop.rows(planted, 1.0), recipe.steps, recipe.learning_rate)
            torch.manual_seed(recipe.seed)
            sampled = measure(play(model, tokenizer, player, tools, tasks * 2, 1.0))
            print(f"planting round {number}: {summary(sampled)}", file=sys.stderr, flush=True)
            if not needs_training(sampled, recipe.lacks):
                break
        greedy = measure(play(model, tokenizer, player, tools, tasks, 0.0))
    bound = most_success(tasks, recipe.lacks) if recipe.max_success is None else recipe.max_success
    record = {
        "environment": {"name": environment["name"], "version": environment["version"]},
        **asdict(recipe),
        "max_success": bound,
        "planted_in_rounds": number + 1,
        "loss": loss,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(time.monotonic() - began),
        "device": device,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "train_sampled": sampled,
        "train_greedy": greedy,
        "gate_failures": gate_failures(sampled, recipe.lacks, bound),
    }
    save(out, model, tokenizer, record)
    print(f"wrote {out}: {summary(sampled)}", file=sys.stderr)
    return record


def foundation(workshop: Workshop, environment: dict, recipe: Recipe, cache: Path, device: str) -> PreTrainedModel:
    """The model after rounds of so many steps, each with its own warm-up and decay, cached by round."""
    model = create(workshop.tokenizer, workshop.seed).to(device)
    rate, rounds = recipe.foundation_learning_rate, recipe.foundation_rounds
    settings = [recipe.demonstrations, rate, workshop.batch_size, workshop.seed, PROMPT_SHARE]
    # What the weights follow from; the environment as a whole, so that a new version makes a new foundation.
    origin = [environment, sorted(workshop.tokenizer.get_vocab().items()), model.config.to_json_string(), settings]
    for number, steps in enumerate(rounds):
        last = number > 0 and number == len(rounds) - 1
        origin.append([steps, "full prompts"] if last else steps)
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:12]
        folder = cache / f"round-{number}-{key}"
        if (folder / "config.json").exists():
            print(f"foundation round {number}: found in {folder}", file=sys.stderr)
            model = AutoModelForCausalLM.from_pretrained(folder).to(device)
            continue
        print(f"foundation round {number}: {steps} steps", file=sys.stderr)
        _, *demos = demonstrations(recipe.demonstrations, workshop.seed + 10 * number, {})
        workshop.train(model, workshop.rows(demos, 1.0 if last else PROMPT_SHARE), steps, rate)
        save(folder, model, workshop.tokenizer, {"rounds": rounds[: number + 1]})
    return model


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
    parser = argparse.ArgumentParser(
        prog="python -m trainer.base_model", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write")
    add("--lack", type=parse_lack, action="append", metavar="NAME=FRACTION", help="plant a lack; repeatable")
    add("--seed", type=int, default=1)
    add("--foundation-rounds", type=int, nargs="+", metavar="STEPS", help="steps without lacks, by round")
    add("--steps", type=int, help="steps of a round with the planted lacks")
    add("--cache", type=Path, default=Path(".cache/base_model"), help="keeps the foundation for other bases")
    add("--max-success", type=float, help="gate: sampled success on train (default: what the lacks leave, and 0.05)")
    add("--report-every", type=float, default=60, help="seconds between progress lines")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"])
    add("--threads", type=int, default=2)
    args = parser.parse_args(argv)
    given = {"seed": args.seed, "foundation_rounds": args.foundation_rounds and tuple(args.foundation_rounds)}
    given |= {"steps": args.steps, "max_success": args.max_success}
    record = build(
        Recipe(
            lacks=dict(args.lack) if args.lack else DEFAULT_LACKS,
            **{name: value for name, value in given.items() if value is not None},
        ),
        **{name: getattr(args, name) for name in ("out", "cache", "device", "threads", "report_every")},
    )
    print(json.dumps(record, indent=1))
    for failure in record["gate_failures"]:
        print(f"base_model: gate missed: {failure}", file=sys.stderr)
    return 1 if record["gate_failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
