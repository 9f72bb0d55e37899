"""Ridge regression of all options' successes at once, on the words and word pairs of a text. Invariants: one penalty
for all options, so that the difference of two predictions is the ridge regression of the options' difference: noise
that they share (a task that all of them solve) cancels out, and the stronger the penalty, the nearer to the best
single option; TypeScript (src/routing/learned.ts) finds the same words and predicts the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupKFold

TIE = 1e-9
"""Predictions that differ by no more are equal: the last digits depend on who computes them."""

TOKEN_PATTERN = r"[A-Za-z0-9_]+|[^ \t\r\nA-Za-z0-9_]"
"""Means the same to Python's and to JavaScript's regular expressions: \\w and \\s do not."""

NGRAMS = (1, 2)

PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
"""On a tie the stronger one."""

INNER_FOLDS = 3
"""The folds of the cross-validation that chooses the penalty."""


def choices(predicted: np.ndarray) -> np.ndarray:
    """For each row of predictions the index of the first option that is as good as the best."""
    return (predicted >= predicted.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


def folds_of(texts: list[str], folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) indices; identical texts are in one fold. At most as many folds as there are different texts."""
    groups = np.unique(texts, return_inverse=True)[1]
    splitter = GroupKFold(min(folds, int(groups.max()) + 1), shuffle=True, random_state=seed)
    return list(splitter.split(texts, groups=groups))


@dataclass(frozen=True)
class RidgeModel:
    """Coefficients for each option, (options, words)."""

    words: CountVectorizer
    coef: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def fit(cls, texts: list[str], rates: np.ndarray, *, seed: int) -> RidgeModel:
        """Fits a model with the penalty that predicts best in an inner cross-validation. `rates[t, o]` is the share of
        trials that option o solved at task t."""
        losses = np.zeros(len(PENALTIES))
        for train, test in folds_of(texts, INNER_FOLDS, seed) if len(set(texts)) > 1 else []:
            words, solve = prepared([texts[i] for i in train], rates[train])
            features = words.transform([texts[i] for i in test]).toarray()
            for index, penalty in enumerate(PENALTIES):
                coef, intercepts = solve(penalty)
                losses[index] += np.sum((features @ coef + intercepts - rates[test]) ** 2)
        words, solve = prepared(texts, rates)
        coef, intercepts = solve(PENALTIES[int(np.argmin(losses))])
        return cls(words, coef.T, intercepts)

    def predictions(self, texts: list[str]) -> np.ndarray:
        """Each option's predicted success, (texts, options)."""
        return self.words.transform(texts) @ self.coef.T + self.intercepts

    def chosen(self, texts: list[str]) -> np.ndarray:
        """The option of each text."""
        return choices(self.predictions(texts))

    def to_json(self, options: list[str]) -> dict[str, Any]:
        """Returns the parameters from which src/routing/learned.ts computes the predictions."""
        return {
            "form": "ridge",
            "words": {
                "lowercase": True,
                "tokenPattern": TOKEN_PATTERN,
                "ngrams": list(NGRAMS),
                "vocabulary": {term: int(index) for term, index in sorted(self.words.vocabulary_.items())},
            },
            "options": [
                {"name": name, "coef": coef.tolist(), "intercept": float(intercept)}
                for name, coef, intercept in zip(options, self.coef, self.intercepts, strict=True)
            ],
        }


Solve = Callable[[float], tuple[np.ndarray, np.ndarray]]


def prepared(texts: list[str], rates: np.ndarray) -> tuple[CountVectorizer, Solve]:
    """The words, and what gives (coefficients, intercepts) for a penalty: there are fewer tasks than words, so the
    regression is solved in the tasks' space, once for all penalties."""
    words = CountVectorizer(binary=True, ngram_range=NGRAMS, token_pattern=TOKEN_PATTERN)
    features = words.fit_transform(texts).toarray().astype(float)
    center, base = features.mean(axis=0), rates.mean(axis=0)
    centered = features - center
    values, vectors = np.linalg.eigh(centered @ centered.T)
    along = vectors.T @ (rates - base)

    def solve(penalty: float) -> tuple[np.ndarray, np.ndarray]:
        coef = centered.T @ (vectors @ (along / (values.clip(min=0) + penalty)[:, None]))
        return coef, base - center @ coef

    return words, solve
