"""Retrieval: the most similar training tasks vote with their outcomes. Invariant: similarities are compared to nine
digits and all tasks as similar as the last neighbour vote, so that nothing depends on the order of the tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .forms import Tried
from .text import Words, inner_folds

SETTINGS = tuple((neighbours, prior) for neighbours in (40, 20, 10, 5) for prior in (30, 10, 3))
"""(neighbours, how many tasks the options' success over all tasks counts for); on a tie the more cautious one."""

DIGITS = 1e9


class Nearest:
    """Cosine of TF-IDF over words and word pairs; with the setting that predicts best in an inner cross-validation."""

    name = "nearest"

    def steps(self, options: int) -> int:
        return len(SETTINGS)

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int, tried: Tried) -> NearestTasks:
        losses = np.zeros(len(SETTINGS))
        for train, test in inner_folds(texts, seed):
            known = NearestTasks([texts[i] for i in train], rates[train])
            similar = known.similarities([texts[i] for i in test])
            for index, setting in enumerate(SETTINGS):
                losses[index] += np.sum((known.votes(similar, setting) - rates[test]) ** 2)
        for _ in SETTINGS:
            tried()
        return NearestTasks(texts, rates, SETTINGS[int(np.argmin(losses))])


class NearestTasks:
    """Tasks with their outcomes, and how they vote."""

    def __init__(self, texts: list[str], rates: np.ndarray, setting: tuple[int, int] = SETTINGS[0]) -> None:
        self.words, self.rates, self.setting = Words(texts), rates, setting
        held = np.asarray(self.words.features.sum(axis=0)).ravel()
        self.idf = np.log((1 + len(texts)) / (1 + held)) + 1
        self.vectors = self._vectors(self.words.features.toarray())

    def _vectors(self, features: np.ndarray) -> np.ndarray:
        weighed = features * self.idf
        length = np.linalg.norm(weighed, axis=1, keepdims=True)
        return weighed / np.where(length == 0, 1, length)

    def similarities(self, texts: list[str]) -> np.ndarray:
        """(texts, tasks)."""
        cosines = self._vectors(self.words.of(texts).toarray()) @ self.vectors.T
        return np.floor(cosines * DIGITS + 0.5) / DIGITS

    def votes(self, similar: np.ndarray, setting: tuple[int, int]) -> np.ndarray:
        neighbours, prior = setting
        last = np.sort(similar, axis=1)[:, -min(neighbours, similar.shape[1])]
        voting = (similar >= last[:, None]).astype(float)
        return (voting @ self.rates + prior * self.rates.mean(axis=0)) / (voting.sum(axis=1, keepdims=True) + prior)

    def predictions(self, texts: list[str]) -> np.ndarray:
        return self.votes(self.similarities(texts), self.setting)

    def to_json(self, options: list[str]) -> dict[str, Any]:
        neighbours, prior = self.setting
        features = self.words.features
        return {
            "form": Nearest.name,
            "words": self.words.to_json(),
            "options": options,
            "idf": self.idf.tolist(),
            "neighbours": neighbours,
            "prior": prior,
            "tasks": [
                {"words": sorted(features[task].indices.tolist()), "rates": rates.tolist()}
                for task, rates in enumerate(self.rates)
            ],
        }
