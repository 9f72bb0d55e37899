"""What the forms of routing see of a text: which words and word pairs it holds. Invariant: TypeScript
(src/routing/learned/words.ts) finds the same ones, and a cross-validation never has one text on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupKFold

TOKEN_PATTERN = r"[A-Za-z0-9_]+|[^ \t\r\nA-Za-z0-9_]"
"""Means the same to Python's and to JavaScript's regular expressions: \\w and \\s do not."""

NGRAMS = (1, 2)

INNER_FOLDS = 3
"""Of the cross-validations that choose a form's own settings."""


class Words:
    """The words and word pairs of `texts`, and which of them other texts hold."""

    def __init__(self, texts: list[str]) -> None:
        self._vectorizer = CountVectorizer(binary=True, ngram_range=NGRAMS, token_pattern=TOKEN_PATTERN)
        self.features = self._vectorizer.fit_transform(texts)

    def of(self, texts: list[str]) -> csr_matrix:
        """(texts, words), 1 where the text holds the word."""
        return self._vectorizer.transform(texts)

    def to_json(self) -> dict[str, Any]:
        return {
            "lowercase": True,
            "tokenPattern": TOKEN_PATTERN,
            "ngrams": list(NGRAMS),
            "vocabulary": {term: int(index) for term, index in sorted(self._vectorizer.vocabulary_.items())},
        }


def folds_of(texts: list[str], folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) indices; identical texts are in one fold. At most as many folds as there are different texts."""
    groups = np.unique(texts, return_inverse=True)[1]
    splitter = GroupKFold(min(folds, int(groups.max()) + 1), shuffle=True, random_state=seed)
    return list(splitter.split(texts, groups=groups))


def inner_folds(texts: list[str], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Those that choose a form's settings; none where all texts are the same."""
    return folds_of(texts, INNER_FOLDS, seed) if len(set(texts)) > 1 else []
