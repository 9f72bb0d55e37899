"""
Applies adapters inside the packed forward. Invariant: a token's result depends on its own row's adapter alone.

Three ways, chosen once per forward: all rows on the base run the plain linear modules; all rows on one adapter use
its merged weights (or its factors, where the model is too large for a merged copy); a mixture puts the factors of all
its adapters side by side as one wide LoRA and masks, per token, every block but its row's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from trainer.peft_folder import Factors
from trainer.serve.adapters import Adapter


@dataclass(frozen=True)
class Plan:
    """What the linear modules do in one forward."""

    weights: Mapping[str, torch.Tensor]
    factors: Factors
    mask: torch.Tensor | None
    """[T, total rank], 1 on the columns of the token's adapter."""


@dataclass(frozen=True)
class _Wide:
    """The factors of several adapters side by side; adapter i owns row i + 1 of `blocks`, row 0 is the base's."""

    adapters: tuple[Adapter, ...]
    factors: Factors
    blocks: torch.Tensor


class LoraMix:
    """Owns the linear modules of a model. `select` sets what the next forward applies."""

    def __init__(self, model: torch.nn.Module) -> None:
        head = model.get_output_embeddings()
        self.linears = {n: m for n, m in model.named_modules() if type(m) is torch.nn.Linear and m is not head}
        self._plan: Plan | None = None
        self._wide: _Wide | None = None
        for name, linear in self.linears.items():
            linear.forward = self._forward(name, linear.weight, linear.bias)

    def select(self, adapters: Sequence[Adapter | None], counts: np.ndarray) -> None:
        """`adapters` of the rows of the next forward and their numbers of tokens."""
        distinct = set(adapters)
        if distinct == {None}:
            self._plan = None
        elif len(distinct) == 1:
            adapter = distinct.pop()
            self._plan = Plan({}, adapter.factors, None) if adapter.merged is None else Plan(adapter.merged, {}, None)
        else:
            distinct.discard(None)
            if (
                self._wide is None
                or not distinct.issubset(self._wide.adapters)
                or len(self._wide.adapters) > 2 * len(distinct)
            ):
                self._wide = self._side_by_side(tuple(distinct))
            row = {adapter: i for i, adapter in enumerate(self._wide.adapters, start=1)}
            rows = np.array([0 if adapter is None else row[adapter] for adapter in adapters])
            tokens = torch.from_numpy(np.repeat(rows, counts)).to(self._wide.blocks.device)
            self._plan = Plan({}, self._wide.factors, self._wide.blocks[tokens])

    def _forward(self, name: str, weight: torch.Tensor, bias: torch.Tensor | None):
        def forward(x: torch.Tensor) -> torch.Tensor:
            plan = self._plan
            if plan is None:
                return F.linear(x, weight, bias)
            merged = plan.weights.get(name)
            if merged is not None:
                return F.linear(x, merged, bias)
            out = F.linear(x, weight, bias)
            pair = plan.factors.get(name)
            if pair is None:
                return out
            a, b = pair
            inner = F.linear(x, a)
            return out + F.linear(inner if plan.mask is None else inner * plan.mask, b)

        return forward

    def _side_by_side(self, adapters: tuple[Adapter, ...]) -> _Wide:
        widths = [max(a.shape[0] for a, _ in adapter.factors.values()) for adapter in adapters]
        factors = {}
        for module in {m for adapter in adapters for m in adapter.factors}:
            weight = self.linears[module].weight
            wide_a = weight.new_zeros(sum(widths), weight.shape[1])
            wide_b = weight.new_zeros(weight.shape[0], sum(widths))
            begin = 0
            for adapter, width in zip(adapters, widths, strict=True):
                if module in adapter.factors:
                    a, b = adapter.factors[module]
                    wide_a[begin : begin + a.shape[0]] = a
                    wide_b[:, begin : begin + a.shape[0]] = b
                begin += width
            factors[module] = (wide_a, wide_b)
        first = next(iter(factors.values()))[0]
        ownership = np.repeat(np.arange(1, len(adapters) + 1), widths)
        blocks = ownership[None, :] == np.arange(len(adapters) + 1)[:, None]
        return _Wide(adapters, factors, torch.from_numpy(blocks).to(first.device, first.dtype))
