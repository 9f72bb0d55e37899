"""Ridge regression of all options' successes at once, on the words and word pairs of a text. Invariant: one penalty
for all options, so that the difference of two predictions is the ridge regression of the options' difference: noise
that they share (a task that all of them solve) cancels out, and the stronger the penalty, the nearer to the best
single option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .forms import Tried
from .text import Words, inner_folds

PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
"""On a tie the stronger one."""


class Ridge:
    """With the penalty that predicts best in an inner cross-validation."""

    name = "ridge"

    def steps(self, options: int) -> int:
        return len(PENALTIES)

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int, tried: Tried) -> RidgeModel:
        losses = np.zeros(len(PENALTIES))
        for train, test in inner_folds(texts, seed):
            words, solve = _prepared([texts[i] for i in train], rates[train])
            features = words.of([texts[i] for i in test]).toarray()
            for index, penalty in enumerate(PENALTIES):
                coef, intercepts = solve(penalty)
                losses[index] += np.sum((features @ coef + intercepts - rates[test]) ** 2)
        for _ in PENALTIES:
            tried()
        words, solve = _prepared(texts, rates)
        coef, intercepts = solve(PENALTIES[int(np.argmin(losses))])
        return RidgeModel(words, coef.T, intercepts)


class RidgeModel:
    """Coefficients for each option, (options, words)."""

    def __init__(self, words: Words, coef: np.ndarray, intercepts: np.ndarray) -> None:
        self.words, self.coef, self.intercepts = words, coef, intercepts

    def predictions(self, texts: list[str]) -> np.ndarray:
        return self.words.of(texts) @ self.coef.T + self.intercepts

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {
            "form": Ridge.name,
            "words": self.words.to_json(),
            "options": [
                {"name": name, "coef": coef.tolist(), "intercept": float(intercept)}
                for name, coef, intercept in zip(options, self.coef, self.intercepts, strict=True)
            ],
        }


Solve = Callable[[float], tuple[np.ndarray, np.ndarray]]


def _prepared(texts: list[str], rates: np.ndarray) -> tuple[Words, Solve]:
    """The words, and what gives (coefficients, intercepts) for a penalty: there are fewer tasks than words, so the
    regression is solved in the tasks' space, once for all penalties."""
    words = Words(texts)
    features = words.features.toarray().astype(float)
    center, base = features.mean(axis=0), rates.mean(axis=0)
    centered = features - center
    values, vectors = np.linalg.eigh(centered @ centered.T)
    along = vectors.T @ (rates - base)

    def solve(penalty: float) -> tuple[np.ndarray, np.ndarray]:
        coef = centered.T @ (vectors @ (along / (values.clip(min=0) + penalty)[:, None]))
        return coef, base - center @ coef

    return words, solve
