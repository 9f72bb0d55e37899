"""Training of the base models: the architecture, supervised fine-tuning on token rows with loss on the model's own
tokens only, and what both stages share.

Invariant: rows of a batch are right-padded, which a causal model does not see, so no attention mask is needed."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from trainer.base_model import text
from trainer.base_model.measure import measure, summary
from trainer.base_model.play import Player, play
from trainer.command import whole_folder

Row = tuple[list[int], list[int]]


def batch(rows: list[Row], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids, and a mask of the positions whose next token carries loss (one column less)."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [pad] * (width - len(r)) for r, _ in rows], device=device)
    own = torch.tensor([m + [0] * (width - len(m)) for _, m in rows], dtype=torch.bool, device=device)
    return ids, own[:, 1:]


def batches(rows: list[Row], size: int, rng: random.Random) -> Iterator[list[Row]]:
    """Endless shuffled passes over the rows, in batches of similar length."""
    while True:
        order = rng.sample(rows, len(rows))
        made = []
        for start in range(0, len(order), size * 8):
            near = sorted(order[start : start + size * 8], key=lambda row: len(row[0]))
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        yield from made


def optimizers(model: PreTrainedModel, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices (look-ups began in half the steps, one run each), AdamW for all else."""
    named = dict(model.named_parameters())
    matrices = [p for name, p in named.items() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named.items() if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def train(
    model: PreTrainedModel,
    rows: list[Row],
    *,
    pad: int,
    steps: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    report_every: float,
    on_report: Callable[[], str],
) -> list[float]:
    """Trains with a short warm-up and linear decay. Prints progress every `report_every` seconds with what `on_report`
    measures. Returns the loss (nats a token) of every step."""
    both = optimizers(model, learning_rate)
    source = batches(rows, batch_size, random.Random(seed))
    losses: list[float] = []
    began = reported = time.monotonic()
    measuring = 0.0
    for step in range(1, steps + 1):
        factor = min(1.0, step / 50, max(0.02, 1.1 * (1 - step / steps)))
        model.train()
        ids, own = batch(next(source), pad, model.device)
        with torch.autocast(model.device.type, dtype=torch.bfloat16):  # Half the time of fp32; the weights stay fp32.
            logits = model.lm_head(model.model(input_ids=ids).last_hidden_state[:, :-1][own])
        loss = torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][own])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in both:
            optimizer.param_groups[0]["lr"] = learning_rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        now = time.monotonic()
        if now - reported >= report_every or step == steps:
            rest = (now - began - measuring) / step * (steps - step)
            recent = sum(losses[-50:]) / len(losses[-50:])
            print(f"step {step}/{steps} loss {recent:.4f} {on_report()} eta {rest:.0f} s", file=sys.stderr, flush=True)
            reported = time.monotonic()
            measuring += reported - now
    return losses


def create(tokenizer: PreTrainedTokenizerFast, seed: int) -> Lfm2ForCausalLM:
    """A randomly initialised fp32 model for the tokenizer's vocabulary; 4 MiB of weights."""
    torch.manual_seed(seed)
    config = Lfm2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=464,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        layer_types=["conv", "full_attention"] * 2,
        block_auto_adjust_ff_dim=False,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.06,  # 0.02 is for wide models; look-ups start later with it.
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Lfm2ForCausalLM(config)


@dataclass(frozen=True)
class Workshop:
    """The real environment with its tools, and how training is run and reported in it."""

    player: Player
    tools: list[dict]
    tokenizer: PreTrainedTokenizerFast
    batch_size: int
    seed: int
    report_every: float

    def rows(self, demonstrations: list[dict], prompt_share: float) -> list[Row]:
        """Token rows with varied prompts; all but `prompt_share` of them go without the system turn."""
        rng = random.Random(self.seed)
        rows = []
        for demo in demonstrations:
            messages, shown = text.vary_prompt(demo["messages"], self.tools, rng)
            rows.append(text.to_row(self.tokenizer, messages, shown, rng.random() < prompt_share))
        return rows

    def train(self, model: PreTrainedModel, rows: list[Row], steps: int, learning_rate: float) -> float:
        """Trains in place, reporting success by skill on held-out tasks. Returns the last 50 steps' mean loss."""
        held_out = self.player.tasks("held-out", "train", 96)

        def report() -> str:
            return summary(measure(play(model, self.tokenizer, self.player, self.tools, held_out, 1.0)))

        losses = train(
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
    """Writes weights, tokenizer and base.json; a folder is never half a model."""
    with whole_folder(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / "base.json").write_text(json.dumps(record, indent=1) + "\n")
