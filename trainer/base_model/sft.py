"""Supervised fine-tuning on token rows, loss on the model's own tokens only.

Invariant: rows of a batch are right-padded, which a causal model does not see, so no attention mask is needed.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator

import torch
from transformers import PreTrainedModel

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
