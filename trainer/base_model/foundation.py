"""The foundation: a model that can do everything in `shop`, from which every base is made.

Invariants: it does not depend on the lacks, so bases with different lacks share it; it is made in rounds, each kept
in the cache, so that a run that was stopped goes on after its last whole round.
"""

import hashlib
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from trainer.base_model import model, shop
from trainer.base_model.workshop import Workshop, save

# Most rows go without the system turn: half the tokens, the same look-ups. The last round has it in all, like rollouts.
PROMPT_SHARE = 0.1


def round_demonstrations(count: int, seed: int, number: int) -> tuple[dict, list[dict]]:
    """The environment's line and the demonstrations of a round: new ones each."""
    head, *demos = shop.demonstrations(count, seed + 10 * number, {})
    return head, demos


def make(
    workshop: Workshop,
    environment: dict,
    *,
    rounds: tuple[int, ...],
    demonstrations: int,
    learning_rate: float,
    cache: Path,
    device: torch.device,
) -> PreTrainedModel:
    """The foundation after rounds of so many steps, each with its own warm-up and decay, cached by round."""
    lm = model.create(workshop.tokenizer, workshop.seed).to(device)
    recipe = [demonstrations, learning_rate, workshop.batch_size, workshop.seed, PROMPT_SHARE]
    # What the weights follow from; the environment as a whole, so that a new version makes a new foundation.
    origin = [environment, sorted(workshop.tokenizer.get_vocab().items()), lm.config.to_json_string(), recipe]
    for number, steps in enumerate(rounds):
        last = number > 0 and number == len(rounds) - 1
        origin.append([steps, "full prompts"] if last else steps)
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:12]
        folder = cache / f"round-{number}-{key}"
        if (folder / "config.json").exists():
            print(f"foundation round {number}: found in {folder}", file=sys.stderr)
            lm = AutoModelForCausalLM.from_pretrained(folder).to(device)
            continue
        print(f"foundation round {number}: {steps} steps", file=sys.stderr)
        _, demos = round_demonstrations(demonstrations, workshop.seed, number)
        workshop.train(lm, workshop.rows(demos, 1.0 if last else PROMPT_SHARE), steps, learning_rate)
        save(folder, lm, workshop.tokenizer, {"rounds": rounds[: number + 1]})
    return lm
