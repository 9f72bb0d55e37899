"""
Gates inside the packed forward. Invariant: before a decoder layer's linear modules run, the mask holds on the tokens of
a gated row, and on the columns of its adapters, the weights that the gate gives them there; all else of it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trainer.gates import GLOBAL, hidden_of, layers_of
from trainer.serve.adapters import Adapter
from trainer.serve.packed import PackedBatch


@dataclass(frozen=True)
class GatedRows:
    """Tokens of one gated adapter in a forward, by index, and its columns of the mask."""

    adapter: Adapter
    columns: slice
    tokens: torch.Tensor


class Gating:
    """Hooks into the decoder layers of a model, which do nothing where `rows` is empty."""

    def __init__(self, model: torch.nn.Module, linears: Mapping[str, torch.nn.Linear]) -> None:
        self.rows: list[GatedRows] = []
        self.mask: torch.Tensor | None = None
        for number, layer in enumerate(layers_of(linears)):
            hook = self._enter(layer, first=number == 0)
            model.get_submodule(layer).register_forward_pre_hook(hook, with_kwargs=True)

    def _enter(self, layer: str, *, first: bool):
        def enter(_: torch.nn.Module, args: tuple, kwargs: dict) -> None:
            if not self.rows:
                return
            hidden = hidden_of(args, kwargs)[0]
            so_far: torch.Tensor | None = None
            for rows in self.rows:
                gate, blocks = rows.adapter.gate, rows.adapter.blocks
                if gate.spec.scope == "layer" and layer in gate.maps:
                    weights = gate.weights(layer, hidden[rows.tokens])
                elif gate.spec.scope == "global" and first:
                    so_far = embedded_so_far(hidden, kwargs["packed"]) if so_far is None else so_far
                    weights = gate.weights(GLOBAL, so_far[rows.tokens])
                else:
                    continue
                self.mask[rows.tokens, rows.columns] = (weights @ blocks).to(self.mask)

        return enter


def embedded_so_far(hidden: torch.Tensor, packed: PackedBatch) -> torch.Tensor:
    """
    Of every token the sum of its row's embeddings up to it, [T, hidden]. What it leaves in the pool holds for rows that
    were in every forward with a gate that asks: for others nobody reads it.
    """
    sums = hidden.to(torch.float32, copy=True)
    for begin, end, _ in packed.long:
        sums[begin:end] = sums[begin:end].cumsum(0)
    sums += packed.pool.embedded[packed.token_slots]
    packed.pool.embedded[packed.token_slots[packed.last]] = sums[packed.last]
    return sums
