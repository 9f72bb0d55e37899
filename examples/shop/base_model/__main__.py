"""Makes, measures and gates a base model: the foundation, which lacks nothing and from which every base is made, then
demonstrations with the planted lacks, then measurement and gates.

    python -m examples.shop.base_model --out models/base --lack refuse=0.75

Invariants: base.json says what the base was made from and what it can do. The foundation does not depend on the lacks,
so bases with different lacks share it; it is made in rounds, each kept in the cache, so that a run that was stopped
goes on after its last whole round."""

import argparse
import hashlib
import json
import platform
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from examples.shop.base_model.measure import gate_failures, measure, most_success, needs_training, summary
from examples.shop.base_model.play import Player, demonstrations, play
from examples.shop.base_model.text import build_tokenizer, to_row, vary_prompt
from examples.shop.base_model.training import BATCH_SIZE, SEED, create, train
from trainer.command import whole_folder

SKILLS = ("complete_all", "refuse", "choose", "tell", "compute", "ask")
DEFAULT_LACKS = {"complete_all": 0.75, "refuse": 0.75, "tell": 0.75}

# For each round and for the planting.
DEMONSTRATIONS = 24_000
# Steps of each round of the foundation, which lacks nothing.
FOUNDATION_ROUNDS, FOUNDATION_RATE = (2500, 4000, 1500), 3e-3
# Steps of one round with the planted lacks; rounds are added, up to so many, until what is not planted is whole.
PLANTING_STEPS, PLANTING_ROUNDS, PLANTING_RATE = 700, 5, 1e-3
# Most rows go without the system turn: half the tokens, the same look-ups. The last round has it in all, like rollouts.
PROMPT_SHARE = 0.1


@dataclass(frozen=True)
class Workshop:
    """The real environment, and how training is run and reported in it."""

    player: Player
    environment: dict
    tokenizer: PreTrainedTokenizerFast

    def train(
        self, model: PreTrainedModel, *, seed: int, lacks: dict[str, float], prompts: float, steps: int, rate: float
    ) -> float:
        """Trains in place on demonstrations with varied prompts, reporting success by skill on held-out tasks; all but
        a share `prompts` of them go without the system turn. Returns the last steps' mean loss."""
        tools, rng, rows = self.environment["tools"], random.Random(SEED), []
        _, *demos = demonstrations(DEMONSTRATIONS, seed, lacks)
        for demo in demos:
            messages, shown = vary_prompt(demo["messages"], tools, rng)
            rows.append(to_row(self.tokenizer, messages, shown, rng.random() < prompts))
        held_out = self.player.tasks("held-out", "train", 96)
        return train(
            model,
            rows,
            steps=steps,
            learning_rate=rate,
            report=lambda: summary(self.measured(model, held_out, temperature=1.0)),
        )

    def measured(self, model: PreTrainedModel, tasks: list[dict], *, temperature: float) -> dict:
        """Success on tasks, each played once."""
        return measure(play(model, self.tokenizer, self.player, self.environment["tools"], tasks, temperature))

    def save(self, out: Path, model: PreTrainedModel, record: dict) -> None:
        """Writes weights, tokenizer and base.json; a folder is never half a model."""
        with whole_folder(out) as folder:
            model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            (folder / "base.json").write_text(json.dumps(record, indent=1) + "\n")


def build(lacks: dict[str, float], *, out: Path, cache: Path) -> dict:
    """Writes the base to `out` and returns its record (base.json)."""
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.monotonic()
    # The vocabulary is the same for all lacks: what a mistaken demonstration says is among the environment's words.
    head, *clean = demonstrations(5000, SEED, {})
    environment = head["environment"]
    tokenizer = build_tokenizer(environment, [*head["words"], *(m["content"] for d in clean for m in d["messages"])])
    with Player() as player:
        workshop = Workshop(player, environment, tokenizer)
        model = foundation(workshop, cache, device)
        tasks = player.tasks("train", "train", 400)
        for number in range(PLANTING_ROUNDS):
            seed = SEED + 1000 + 10 * number
            loss = workshop.train(model, seed=seed, lacks=lacks, prompts=1.0, steps=PLANTING_STEPS, rate=PLANTING_RATE)
            torch.manual_seed(SEED)
            sampled = workshop.measured(model, tasks * 2, temperature=1.0)
            print(f"planting round {number}: {summary(sampled)}", file=sys.stderr, flush=True)
            if not needs_training(sampled, lacks):
                break
        greedy = workshop.measured(model, tasks, temperature=0.0)
    bound = most_success(tasks, lacks)
    record = {
        "environment": {"name": environment["name"], "version": environment["version"]},
        "lacks": lacks,
        "seed": SEED,
        "foundation_rounds": FOUNDATION_ROUNDS,
        "steps": PLANTING_STEPS,
        "planting_rounds": PLANTING_ROUNDS,
        "demonstrations": DEMONSTRATIONS,
        "batch_size": BATCH_SIZE,
        "foundation_learning_rate": FOUNDATION_RATE,
        "learning_rate": PLANTING_RATE,
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
        "gate_failures": gate_failures(sampled, lacks, bound),
    }
    workshop.save(out, model, record)
    print(f"wrote {out}: {summary(sampled)}", file=sys.stderr)
    return record


def foundation(workshop: Workshop, cache: Path, device: str) -> PreTrainedModel:
    """The model after rounds of so many steps, each with its own warm-up and decay, cached by round."""
    model = create(workshop.tokenizer).to(device)
    settings = [DEMONSTRATIONS, FOUNDATION_RATE, BATCH_SIZE, SEED, PROMPT_SHARE]
    vocabulary = sorted(workshop.tokenizer.get_vocab().items())
    # What the weights follow from; the environment as a whole, so that a new version makes a new foundation.
    origin = [workshop.environment, vocabulary, model.config.to_json_string(), settings]
    for number, steps in enumerate(FOUNDATION_ROUNDS):
        last = number == len(FOUNDATION_ROUNDS) - 1
        origin.append([steps, "full prompts"] if last else steps)
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:12]
        folder = cache / f"round-{number}-{key}"
        if (folder / "config.json").exists():
            print(f"foundation round {number}: found in {folder}", file=sys.stderr)
            model = AutoModelForCausalLM.from_pretrained(folder).to(device)
            continue
        print(f"foundation round {number}: {steps} steps", file=sys.stderr)
        prompts, seed = 1.0 if last else PROMPT_SHARE, SEED + 10 * number
        workshop.train(model, seed=seed, lacks={}, prompts=prompts, steps=steps, rate=FOUNDATION_RATE)
        workshop.save(folder, model, {"rounds": FOUNDATION_ROUNDS[: number + 1]})
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
        prog="python -m examples.shop.base_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write")
    add("--lack", type=parse_lack, action="append", metavar="NAME=FRACTION", help="plant a lack; repeatable")
    add("--cache", type=Path, default=Path(".cache/base_model"), help="keeps the foundation for other bases")
    args = parser.parse_args(argv)
    record = build(dict(args.lack) if args.lack else DEFAULT_LACKS, out=args.out, cache=args.cache)
    print(json.dumps(record, indent=1))
    for failure in record["gate_failures"]:
        print(f"base_model: gate missed: {failure}", file=sys.stderr)
    return 1 if record["gate_failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
