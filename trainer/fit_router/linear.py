"""One logistic regression per option on the words and word pairs of a text. Invariant: what TypeScript computes from
`to_json` (src/routing/linear/model.ts) is what `probabilities` computes here;
trainer/tests/fixtures/router_contract.json holds both to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack
from scipy.special import expit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

TOKEN_PATTERN = r"[A-Za-z0-9_]+|[^\sA-Za-z0-9_]"
"""Means the same to Python's and to JavaScript's regular expressions: \\w does not."""

NGRAMS = (1, 2)
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
"""Candidates for C, the inverse of the L2 penalty; on a tie the stronger penalty."""

INNER_FOLDS = 3


class LinearRouter:
    """Fitted on `texts` and rates[t, o], the share of trials that option o solved at task t; every task weighs the
    same. `tried` is called for every penalty of every option."""

    def __init__(
        self, texts: list[str], rates: np.ndarray, seed: int, tried: Callable[[], None] = lambda: None
    ) -> None:
        self.vectorizer = CountVectorizer(binary=True, ngram_range=NGRAMS, token_pattern=TOKEN_PATTERN)
        features = self.vectorizer.fit_transform(texts)
        self.models = [_fit_option(features, rates[:, option], texts, seed, tried) for option in range(rates.shape[1])]

    def probabilities(self, texts: list[str]) -> np.ndarray:
        """Predicted success probabilities, (texts, options)."""
        features = self.vectorizer.transform(texts)
        return np.stack([expit(features @ coef + intercept) for coef, intercept in self.models], axis=1)

    def choices(self, texts: list[str]) -> np.ndarray:
        """Index of the option with the highest probability for each text; on a tie the first one, the base model."""
        return self.probabilities(texts).argmax(axis=1)

    def to_json(self, options: list[str]) -> dict[str, Any]:
        vocabulary = {term: int(index) for term, index in sorted(self.vectorizer.vocabulary_.items())}
        return {
            "kind": "linear",
            "lowercase": True,
            "tokenPattern": TOKEN_PATTERN,
            "ngrams": list(NGRAMS),
            "vocabulary": vocabulary,
            "options": [
                {"name": name, "coef": coef.tolist(), "intercept": float(intercept)}
                for name, (coef, intercept) in zip(options, self.models, strict=True)
            ],
        }


def folds_of(texts: list[str], folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) indices; identical texts are in one fold. At most as many folds as there are different texts."""
    groups = np.unique(texts, return_inverse=True)[1]
    splitter = GroupKFold(min(folds, int(groups.max()) + 1), shuffle=True, random_state=seed)
    return list(splitter.split(texts, groups=groups))


def _fit_option(
    features: csr_matrix, rates: np.ndarray, texts: list[str], seed: int, tried: Callable[[], None]
) -> tuple[np.ndarray, float]:
    """(coefficients, intercept), with the penalty that predicts best in an inner cross-validation."""
    if len(set(texts)) < 2:
        for _ in STRENGTHS:  # there is nothing to try them on
            tried()
        return _fit(features, rates, STRENGTHS[0])
    inner = folds_of(texts, INNER_FOLDS, seed)
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
