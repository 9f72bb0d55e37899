"""
The model and its cached state behind one call: feed new tokens of some rows, get the logits after each row's last.

Invariant: what `forward` returns equals the plain transformers forward of each row on its own, up to float round-off;
`check` proves it for the loaded model before it serves anybody.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from trainer.serve import packed
from trainer.serve.adapters import Adapter
from trainer.serve.lora_mix import LoraMix
from trainer.serve.packed import PackedBatch, Segment
from trainer.serve.state_pool import StatePool

# Kernels from a hub are looked for at import time otherwise: a server must start without network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


class ModelRunner:
    """A causal LM with room for `slots` rows."""

    def __init__(self, folder: Path, *, slots: int, device: str = "auto") -> None:
        from transformers import AutoModelForCausalLM

        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        # Half precision has no fast kernels on most CPUs.
        dtype = torch.float32 if self.device.type == "cpu" else "auto"
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(self.device).eval()
        config = self.model.config
        self.context: int = config.max_position_embeddings
        self.slots = slots
        self.eos = _eos_ids(self.model)
        self.pool = StatePool(config, slots=slots, context=self.context, dtype=self.model.dtype, device=self.device)
        packed.install(self.model)
        self.mix = LoraMix(self.model)

    def forward(self, segments: list[Segment], adapters: list[Adapter | None]) -> torch.Tensor:
        """Feeds the segments, in the order that PackedBatch asks for. Returns logits [rows, vocabulary]."""
        with torch.inference_mode():
            self.pool.reserve(max(s.start + len(s.ids) for s in segments))
            batch = PackedBatch(segments, self.pool)
            self.mix.select(adapters, batch.counts)
            return self.model(
                input_ids=batch.input_ids,
                position_ids=batch.position_ids,
                use_cache=False,
                logits_to_keep=batch.last,
                packed=batch,
            ).logits[0]


def _eos_ids(model: torch.nn.Module) -> frozenset[int]:
    eos = model.generation_config.eos_token_id
    if eos is None:
        raise ValueError("the model names no eos_token_id; set it in its generation_config.json")
    return frozenset(eos if isinstance(eos, list) else [eos])
