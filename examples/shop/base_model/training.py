"""Training of the base models: the architecture, and supervised fine-tuning on token rows with loss on the model's own
tokens only.

Invariant: rows of a batch are right-padded, which a causal model does not see, so no attention mask is needed."""

import random
import sys
from collections.abc import Iterator
from itertools import islice

import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

SEED, BATCH_SIZE = 1, 16

Row = tuple[list[int], list[int]]
"""Token ids, and 1 on those that the model writes itself."""


def create(tokenizer: PreTrainedTokenizerFast) -> Lfm2ForCausalLM:
    """A randomly initialised fp32 model for the tokenizer's vocabulary; 4 MiB of weights."""
    torch.manual_seed(SEED)
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


def train(model: PreTrainedModel, rows: list[Row], *, steps: int, learning_rate: float) -> None:
    """Trains with a short warm-up and linear decay, and prints progress."""
    # Muon for the matrices (look-ups began in half the steps, one run each), AdamW for all else.
    named = dict(model.named_parameters())
    matrices = {name: p for name, p in named.items() if p.ndim == 2 and "embed" not in name}
    others = [p for name, p in named.items() if name not in matrices]
    optimizers = [
        torch.optim.Muon(matrices.values(), lr=learning_rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    for step, batch in enumerate(islice(_batches(rows), steps), start=1):
        factor = min(1.0, step / 50, max(0.02, 1.1 * (1 - step / steps)))
        model.train()
        ids, own = _padded(batch, model.config.pad_token_id, model.device)
        with torch.autocast(model.device.type, dtype=torch.bfloat16):  # Half the time of fp32; the weights stay fp32.
            logits = model.lm_head(model.model(input_ids=ids).last_hidden_state[:, :-1][own])
        loss = torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][own])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = learning_rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step}/{steps} loss {loss.item():.4f}", file=sys.stderr, flush=True)


def _batches(rows: list[Row]) -> Iterator[list[Row]]:
    """Endless shuffled passes over the rows, in batches of similar length."""
    rng = random.Random(SEED)
    while True:
        order = rng.sample(rows, len(rows))
        made = []
        for start in range(0, len(order), BATCH_SIZE * 8):
            near = sorted(order[start : start + BATCH_SIZE * 8], key=lambda row: len(row[0]))
            made += [near[i : i + BATCH_SIZE] for i in range(0, len(near), BATCH_SIZE)]
        rng.shuffle(made)
        yield from made


def _padded(rows: list[Row], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids, and a mask of the positions whose next token carries loss (one column less)."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [pad] * (width - len(r)) for r, _ in rows], device=device)
    own = torch.tensor([m + [0] * (width - len(m)) for _, m in rows], dtype=torch.bool, device=device)
    return ids, own[:, 1:]
