"""One logistic regression per option on the words and word pairs of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from .forms import Tried
from .text import Words, inner_folds

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
"""Candidates for C, the inverse of the L2 penalty; on a tie the stronger penalty."""


class Linear:
    """A penalty for each option, the one that predicts best in an inner cross-validation."""

    name = "linear"

    def steps(self, options: int) -> int:
        return options * len(STRENGTHS)

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int, tried: Tried) -> LinearModel:
        words = Words(texts)
        inner = inner_folds(texts, seed)
        fitted = [_fit_option(words.features, rates[:, option], inner, tried) for option in range(rates.shape[1])]
        coef = np.stack([coef for coef, _ in fitted])
        return LinearModel(words, coef, np.array([intercept for _, intercept in fitted]), link="logistic")


class LinearModel:
    """Coefficients for each option, (options, words). `link`: how what they add up to becomes a prediction."""

    def __init__(self, words: Words, coef: np.ndarray, intercepts: np.ndarray, *, link: str) -> None:
        self.words, self.coef, self.intercepts, self.link = words, coef, intercepts, link

    def predictions(self, texts: list[str]) -> np.ndarray:
        sums = self.words.of(texts) @ self.coef.T + self.intercepts
        return expit(sums) if self.link == "logistic" else sums

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {
            "form": "linear" if self.link == "logistic" else "ridge",
            "words": self.words.to_json(),
            "options": [
                {"name": name, "coef": coef.tolist(), "intercept": float(intercept)}
                for name, coef, intercept in zip(options, self.coef, self.intercepts, strict=True)
            ],
        }


def _fit_option(
    features: csr_matrix, rates: np.ndarray, inner: list[tuple[np.ndarray, np.ndarray]], tried: Tried
) -> tuple[np.ndarray, float]:
    """(coefficients, intercept); without inner folds with the strongest penalty."""
    losses = []
    for strength in STRENGTHS:
        loss = 0.0
        for train, test in inner:
            coef, intercept = _fit(features[train], rates[train], strength)
            predicted = expit(features[test] @ coef + intercept).clip(1e-12, 1 - 1e-12)
            loss -= float(np.sum(rates[test] * np.log(predicted) + (1 - rates[test]) * np.log(1 - predicted)))
        losses.append(loss)
        tried()
    return _fit(features, rates, STRENGTHS[int(np.argmin(losses))])


def _fit(features: csr_matrix, rates: np.ndarray, strength: float) -> tuple[np.ndarray, float]:
    if rates.min() == rates.max():  # nothing to tell apart: the smoothed rate, whatever the text
        rate = (rates.sum() + 0.5) / (len(rates) + 1)
        return np.zeros(features.shape[1]), float(np.log(rate / (1 - rate)))
    # A task solved in a share r of its trials is a success with weight r and a failure with weight 1 - r.
    labels = np.repeat([1, 0], len(rates))
    weights = np.concatenate([rates, 1 - rates])
    kept = weights > 0
    model = LogisticRegression(C=strength, max_iter=2000, tol=1e-8)
    model.fit(vstack([features, features]).tocsr()[kept], labels[kept], sample_weight=weights[kept])
    return model.coef_[0], float(model.intercept_[0])
