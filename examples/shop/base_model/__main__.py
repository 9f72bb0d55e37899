"""Makes, measures and gates a base model: a foundation that lacks nothing, demonstrations with the planted lacks, then
measurement and gates.

    python -m examples.shop.base_model --out models/base --lack refuse=0.75

Invariant: base.json says which lacks were planted and what the base can do."""

import argparse
import json
import random
import sys
from pathlib import Path

import torch
from transformers import PreTrainedModel

from examples.shop.base_model.measure import gate_failures, measure, summary
from examples.shop.base_model.play import Player, play
from examples.shop.base_model.text import build_tokenizer, to_row, vary_prompt
from examples.shop.base_model.training import SEED, create, train
from trainer.command import whole_folder

SKILLS = ("complete_all", "refuse", "choose", "tell", "compute", "ask")
DEFAULT_LACKS = {"complete_all": 0.75, "refuse": 0.75, "tell": 0.75}

# Demonstrations of each round, and of the planting.
DEMONSTRATIONS = 24_000
# Steps of each round of the foundation, which lacks nothing.
FOUNDATION_ROUNDS, FOUNDATION_RATE = (2500, 4000, 1500), 3e-3
# Steps of one round with the planted lacks. Rounds are added, up to PLANTING_ROUNDS, until no other skill is damaged.
PLANTING_STEPS, PLANTING_ROUNDS, PLANTING_RATE = 700, 5, 1e-3
# Most rows go without the system turn: half the tokens, the same look-ups. The last round has it in all, like rollouts.
PROMPT_SHARE = 0.1


class Workshop:
    """The real environment, the tokenizer for it, and how a model is trained and measured in it."""

    def __init__(self, player: Player) -> None:
        self._player = player
        # The vocabulary is the same for all lacks: a mistaken demonstration says nothing but words of the environment.
        clean = player.demonstrations(5000, SEED, {})
        self.environment = clean["environment"]
        said = [message["content"] for demo in clean["demonstrations"] for message in demo["messages"]]
        self.tokenizer = build_tokenizer(self.environment, [*clean["words"], *said])
        self.tasks = player.tasks(400)

    def train(
        self, model: PreTrainedModel, *, seed: int, lacks: dict[str, float], prompts: float, steps: int, rate: float
    ) -> None:
        """Trains in place on demonstrations with varied prompts; all but a share `prompts` of them go without the
        system turn."""
        tools, rng, rows = self.environment["tools"], random.Random(SEED), []
        for demo in self._player.demonstrations(DEMONSTRATIONS, seed, lacks)["demonstrations"]:
            messages, shown = vary_prompt(demo["messages"], tools, rng)
            rows.append(to_row(self.tokenizer, messages, shown, rng.random() < prompts))
        train(model, rows, steps=steps, learning_rate=rate)

    def measured(self, model: PreTrainedModel) -> dict:
        """Success on the tasks, each played twice."""
        torch.manual_seed(SEED)
        return measure(play(model, self.tokenizer, self._player, self.environment["tools"], self.tasks * 2))


def build(lacks: dict[str, float], out: Path) -> dict:
    """Writes the base to `out` and returns its record (base.json)."""
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with Player() as player:
        workshop = Workshop(player)
        model = create(workshop.tokenizer).to(device)
        # The foundation: each round has its own warm-up and decay.
        for number, steps in enumerate(FOUNDATION_ROUNDS):
            print(f"foundation round {number}: {steps} steps", file=sys.stderr)
            prompts = 1.0 if number == len(FOUNDATION_ROUNDS) - 1 else PROMPT_SHARE
            seed = SEED + 10 * number
            workshop.train(model, seed=seed, lacks={}, prompts=prompts, steps=steps, rate=FOUNDATION_RATE)
        for number in range(PLANTING_ROUNDS):
            seed = SEED + 1000 + 10 * number
            workshop.train(model, seed=seed, lacks=lacks, prompts=1.0, steps=PLANTING_STEPS, rate=PLANTING_RATE)
            sampled = workshop.measured(model)
            print(f"planting round {number}: {summary(sampled)}", file=sys.stderr, flush=True)
            if not (missed := gate_failures(sampled, lacks)):
                break
    record = {
        "environment": {name: workshop.environment[name] for name in ("name", "version")},
        "lacks": lacks,
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_sampled": sampled,
        "gate_failures": missed,
    }
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        workshop.tokenizer.save_pretrained(folder)
        (folder / "base.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"wrote {out}: {summary(sampled)}", file=sys.stderr)
    return record


def parse_lack(value: str) -> tuple[str, float]:
    """Reads `NAME=FRACTION`."""
    name, _, fraction = value.partition("=")
    if name not in SKILLS or not 0 <= float(fraction) <= 1:
        raise ValueError(value)
    return name, float(fraction)


def main(argv: list[str] | None = None) -> int:
    """Exit code 0 if the base passed its gates, 1 if not (the folder is written all the same, with what was missed)."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.shop.base_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write")
    add("--lack", type=parse_lack, action="append", metavar="NAME=FRACTION", help="plant a lack of a skill; repeatable")
    args = parser.parse_args(argv)
    record = build(dict(args.lack) if args.lack else DEFAULT_LACKS, args.out)
    print(json.dumps(record, indent=1))
    for failure in record["gate_failures"]:
        print(f"base_model: gate missed: {failure}", file=sys.stderr)
    return 1 if record["gate_failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
