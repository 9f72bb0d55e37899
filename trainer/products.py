"""
The products of linear layers whose weights do not change, y = x W^T + b. Invariant: what is computed here is what
F.linear computes, in the weight's own precision, up to round-off.

Why not F.linear alone: oneDNN on weights that were reordered once takes two thirds to three quarters of the time of the
BLAS that F.linear calls, and half of it for a head over 49,152 tokens (docs/results.md).
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Product = Callable[[torch.Tensor], torch.Tensor]

SMALLEST_REORDERED = 100_000
"""Weights with fewer elements stay in the cache, and the call itself would be what takes time."""

ROWS = 32
"""The layout is chosen for so many rows; any number can be multiplied."""


def product(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Product:
    """The product, for use where nothing needs a gradient."""
    if not can_reorder(weight):
        return lambda x: F.linear(x, weight, bias)
    multiply = torch.ops.mkldnn._linear_pointwise
    reordered = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), ROWS)
    return lambda x: multiply(x, reordered, bias, "none", [], "")


def frozen_product(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Product:
    """The product, through which gradients reach the inputs."""
    ahead, back = product(weight, bias), product(weight.detach().t())
    return lambda x: _Frozen.apply(x, ahead, back)


def can_reorder(weight: torch.Tensor) -> bool:
    """Whether there is something to gain."""
    # These operators are torch.compile's own: a build without oneDNN has none.
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.numel() >= SMALLEST_REORDERED
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


class _Frozen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ahead: Product, back: Product) -> torch.Tensor:
        ctx.back = back
        return ahead(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.back(gradient), None, None
