"""Builds a base model: the foundation, then demonstrations with the planted lacks, then measurement and gates.

Invariant: base.json tells what the base was made from and what it can do.
"""

import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import transformers

from trainer.base_model import foundation, shop, tokenizer
from trainer.base_model.measure import gate_failures, measure, most_success, needs_training, summary
from trainer.base_model.play import play
from trainer.base_model.workshop import Workshop, save


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


def choose_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one."""
    return torch.device("cuda" if name == "auto" and torch.cuda.is_available() else name.replace("auto", "cpu"))


def build(recipe: Recipe, *, out: Path, cache: Path, device: str, threads: int, report_every: float) -> dict:
    """Writes the base to `out` and returns its record (base.json)."""
    torch.set_num_threads(threads)
    target = choose_device(device)
    began = time.monotonic()
    # The vocabulary is the same for all lacks: what a mistaken demonstration says is among the environment's words.
    head, clean = foundation.round_demonstrations(5000, recipe.seed, 0)
    environment, tools = head["environment"], head["environment"]["tools"]
    tok = tokenizer.build(environment, [*head["words"], *(m["content"] for d in clean for m in d["messages"])])
    with shop.Player() as player:
        workshop = Workshop(player, tools, tok, recipe.batch_size, recipe.seed, report_every)
        lm = foundation.make(
            workshop,
            environment,
            rounds=recipe.foundation_rounds,
            demonstrations=recipe.demonstrations,
            learning_rate=recipe.foundation_learning_rate,
            cache=cache,
            device=target,
        )
        tasks = player.tasks("train", "train", 400)
        for number in range(recipe.planting_rounds):
            _, *planted = shop.demonstrations(recipe.demonstrations, recipe.seed + 1000 + 10 * number, recipe.lacks)
            loss = workshop.train(lm, workshop.rows(planted, 1.0), recipe.steps, recipe.learning_rate)
            torch.manual_seed(recipe.seed)
            sampled = measure(play(lm, tok, player, tools, tasks * 2, 1.0))
            print(f"planting round {number}: {summary(sampled)}", file=sys.stderr, flush=True)
            if not needs_training(sampled, recipe.lacks):
                break
        greedy = measure(play(lm, tok, player, tools, tasks, 0.0))
    bound = most_success(tasks, recipe.lacks) if recipe.max_success is None else recipe.max_success
    record = {
        "environment": {"name": environment["name"], "version": environment["version"]},
        **asdict(recipe),
        "max_success": bound,
        "planted_in_rounds": number + 1,
        "loss": loss,
        "parameters": sum(p.numel() for p in lm.parameters()),
        "seconds": round(time.monotonic() - began),
        "device": target.type,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "train_sampled": sampled,
        "train_greedy": greedy,
        "gate_failures": gate_failures(sampled, recipe.lacks, bound),
    }
    save(out, lm, tok, record)
    print(f"wrote {out}: {summary(sampled)}", file=sys.stderr)
    return record
