"""
The model and its cached state behind one call: feed new tokens of some rows, get the logits after each row's last.

Invariant: what `forward` returns equals the plain transformers forward of each row on its own, up to float round-off;
`check` proves it for the loaded model before it serves anybody.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from transformers import PretrainedConfig

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
        try:
            self._prepare()
        except Exception as error:  # an architecture may break anywhere in its own forward
            reason = f"model type {config.model_type} cannot run packed ({error}); serve it with vLLM"
            raise ValueError(f"--model {folder}: {reason}") from error

    def _prepare(self) -> None:
        config = self.model.config
        _check_attention(config)
        probes = [[(7 * i + n) % config.vocab_size for i in range(n)] for n in (11, 7)]
        with torch.inference_mode():
            plain = [self.model(torch.tensor([p], device=self.device)).logits[0].log_softmax(-1) for p in probes]
        self.pool = StatePool(
            config, slots=self.slots, context=self.context, dtype=self.model.dtype, device=self.device
        )
        packed.install(self.model)
        self.mix = LoraMix(self.model)
        self._check(probes, plain)

    def _check(self, probes: list[list[int]], plain: list[torch.Tensor]) -> None:
        """Feeds the probes in unequal parts, the second joining late, and compares with what the plain model gave."""
        first, second = probes
        slots = (min(self.slots, 2) - 1, 0)  # not the last: that would make room for all
        for slot in set(slots):
            self.pool.clear(slot)
        parts = [(0, 0, 5), (0, 5, 6), (0, 6, 11)] + ([(1, 0, 3), (1, 3, 4), (1, 4, 7)] if self.slots > 1 else [])
        worst = 0.0
        for row, begin, end in parts:
            segment = Segment(slots[row], begin, (first, second)[row][begin:end])
            found = self.forward([segment], [None])[0].log_softmax(-1)
            worst = max(worst, (found - plain[row][end - 1]).abs().max().item())
        limit = 1e-3 if self.model.dtype == torch.float32 else 0.25
        if not worst <= limit:
            raise ValueError(f"its log-probs differ from the plain forward by {worst:.2g}")

    def forward(self, segments: list[Segment], adapters: list[Adapter | None]) -> torch.Tensor:
        """Feeds the segments, in the order that PackedBatch asks for. Returns logits [rows, vocabulary]."""
        with torch.inference_mode():
            self.pool.reserve(max(s.start + len(s.ids) for s in segments), 1 + max(s.slot for s in segments))
            batch = PackedBatch(segments, self.pool)
            self.mix.select(adapters, batch.counts)
            return self.model(
                input_ids=batch.input_ids,
                position_ids=batch.position_ids,
                use_cache=False,
                logits_to_keep=batch.last,
                packed=batch,
            ).logits[0]


def _check_attention(config: PretrainedConfig) -> None:
    """Raises ValueError for a sliding window: the probes are too short to show it."""
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    kinds = getattr(config, "layer_types", None)
    if "sliding_attention" in kinds if kinds else window and window < config.max_position_embeddings:
        raise ValueError(f"its layers attend to the last {window} tokens (sliding_window), here to all before them")


def _eos_ids(model: torch.nn.Module) -> frozenset[int]:
    eos = model.generation_config.eos_token_id
    if eos is None:
        raise ValueError("the model names no eos_token_id; set it in its generation_config.json")
    return frozenset(eos if isinstance(eos, list) else [eos])
