"""What both stages of making a base model share: rows of demonstrations, measured training, whole folders.

Invariant: a folder without config.json is not a model; it is written last.
"""

import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from trainer.base_model import conversation, sft
from trainer.base_model.measure import measure, summary
from trainer.base_model.play import play
from trainer.base_model.shop import Player


@dataclass(frozen=True)
class Workshop:
    """The real environment with its tools, and how training is run and reported in it."""

    player: Player
    tools: list[dict]
    tokenizer: PreTrainedTokenizerFast
    batch_size: int
    seed: int
    report_every: float

    def rows(self, demonstrations: list[dict], prompt_share: float) -> list[sft.Row]:
        """Token rows with varied prompts; all but `prompt_share` of them go without the system turn."""
        rng = random.Random(self.seed)
        rows = []
        for demo in demonstrations:
            messages, shown = conversation.vary_prompt(demo["messages"], self.tools, rng)
            rows.append(conversation.to_row(self.tokenizer, messages, shown, rng.random() < prompt_share))
        return rows

    def train(self, model: PreTrainedModel, rows: list[sft.Row], steps: int, learning_rate: float) -> float:
        """Trains in place, reporting success by skill on held-out tasks. Returns the last 50 steps' mean loss."""
        held_out = self.player.tasks("held-out", "train", 96)

        def report() -> str:
            return summary(measure(play(model, self.tokenizer, self.player, self.tools, held_out, 1.0)))

        losses = sft.train(
            model,
            rows,
            pad=self.tokenizer.pad_token_id,
            steps=steps,
            batch_size=self.batch_size,
            learning_rate=learning_rate,
            seed=self.seed,
            report_every=self.report_every,
            on_report=report,
        )
        return round(sum(losses[-50:]) / len(losses[-50:]), 5)


def save(out: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, record: dict) -> None:
    """Writes weights, tokenizer and base.json aside first, so that a folder is never half a model."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        aside = Path(folder)
        model.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        (aside / "base.json").write_text(json.dumps(record, indent=1) + "\n")
        for path in sorted(aside.iterdir(), key=lambda p: p.name == "config.json"):
            path.replace(out / path.name)
