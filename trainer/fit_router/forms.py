"""What a form of routing is: a way to predict each option's success from a text. Invariants: whatever a form chooses
for itself (a penalty) it chooses on the tasks that it is fitted on; on a tie the first option
wins, and options stand in that order: the base model, what has one adapter, sums of more and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

TIE = 1e-9
"""Predictions that differ by no more are equal: the last digits depend on who computes them."""

Tried = Callable[[], None]


class Fitted(Protocol):
    """A form, fitted."""

    def predictions(self, texts: list[str]) -> np.ndarray:
        """Each option's predicted success, (texts, options)."""

    def to_json(self, options: list[str]) -> dict[str, Any]:
        """What TypeScript computes the predictions from."""


class Form(Protocol):
    """Fits itself on `texts` and rates[t, o], the share of trials that option o solved at task t."""

    name: str

    def steps(self, options: int) -> int:
        """How often `fit` calls `tried`."""

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int, tried: Tried) -> Fitted: ...


def choices(predicted: np.ndarray) -> np.ndarray:
    """For each row of predictions the index of the first option that is as good as the best."""
    return (predicted >= predicted.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


class Constant:
    """The option that solves the most tasks, whatever the text."""

    name = "constant"

    def steps(self, options: int) -> int:
        return 1

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int, tried: Tried) -> _FittedConstant:
        tried()
        return _FittedConstant(rates.mean(axis=0))


class _FittedConstant:
    def __init__(self, rates: np.ndarray) -> None:
        self.rates = rates

    def predictions(self, texts: list[str]) -> np.ndarray:
        return np.tile(self.rates, (len(texts), 1))

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {"form": Constant.name}
