"""The base model as classifier: calibrated probabilities of labels, and the sum of those that are in the nucleus.
Invariants: src/routing/label-tokens.ts chooses the same of the same log-probs; a text to which the base model names
no label is left to the base model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .outcomes import BASE, Outcomes
from .ridge import TIE

NUCLEI = (0.99, 0.95, 0.9, 0.8, 0.65, 0.5, 0.3)
"""Candidates for p; on a tie the first, and fewer neighbours before more."""

PENALTY = 0.01
"""Regularizes the prior and the log temperature: a label that never was right keeps some probability."""


class Labels:
    """The base model's answers by text, and the options that labels add up to."""

    def __init__(self, outcomes: Outcomes) -> None:
        assert outcomes.labels is not None
        self.names, self.neighbours = outcomes.labels.names, outcomes.labels.neighbours
        self._logprobs = dict(zip(outcomes.texts, outcomes.labels.logprobs, strict=True))
        self._options = [frozenset(option.split("+")) for option in outcomes.options]
        self._base = outcomes.options.index(BASE)

    def fit(self, texts: list[str], rates: np.ndarray) -> FittedLabels:
        """Temperature, prior, k and p, all chosen on these tasks: they are few numbers."""
        needed = np.array([self._needed(row) for row in rates])
        best: FittedLabels | None = None
        most = -1.0
        for index in range(len(self.neighbours)):
            logprobs = self.logprobs(texts, index)
            temperature, prior = _calibrated(logprobs, needed)
            for nucleus in NUCLEI:
                fitted = FittedLabels(self, index, temperature, prior, nucleus)
                solved = float(rates[np.arange(len(texts)), fitted.chosen(texts)].mean())
                if solved > most + TIE:
                    best, most = fitted, solved
        assert best is not None
        return best

    def logprobs(self, texts: list[str], index: int) -> np.ndarray:
        """Log-probs [texts, names]; -inf of what was no candidate, NaN in rows that could not be labelled."""
        rows = np.array([self._logprobs[text][index] for text in texts], dtype=float)  # null becomes NaN
        unlabelled = np.isnan(rows).all(axis=1, keepdims=True)
        return np.where(np.isnan(rows) & ~unlabelled, -np.inf, rows)

    def option(self, names: list[str]) -> int:
        """Returns the option that combines the longest prefix of `names`; the base model if it is first."""
        if not names or names[0] == BASE:
            return self._base
        adapters = [name for name in names if name != BASE]
        sums = (frozenset(adapters[:count]) for count in range(len(adapters), 0, -1))
        return next(self._options.index(one) for one in sums if one in self._options)

    def _needed(self, rates: np.ndarray) -> np.ndarray:
        """The parts of the first option, and so of the smallest, that solved the task; nothing if none did."""
        solved = next((option for option, rate in zip(self._options, rates, strict=True) if rate > 0.5), frozenset())
        needed = np.array([float(name in solved) for name in self.names])
        return needed / max(needed.sum(), 1)


@dataclass(frozen=True)
class FittedLabels:
    labels: Labels
    index: int
    temperature: float
    prior: np.ndarray
    nucleus: float

    def chosen(self, texts: list[str]) -> np.ndarray:
        """The option of each text."""
        names, logprobs = self.labels.names, self.labels.logprobs(texts, self.index)
        known = ~np.isnan(logprobs).any(axis=1)
        likely = softmax(logprobs[known] / self.temperature + self.prior, axis=1)
        order = np.argsort(-np.round(likely, 9), axis=1, kind="stable")
        ordered = np.take_along_axis(likely, order, axis=1)
        inside = np.cumsum(ordered, axis=1) - ordered < self.nucleus - TIE
        chosen = np.full(len(logprobs), self.labels.option([]))
        chosen[known] = [
            self.labels.option([names[n] for n in row[within]]) for row, within in zip(order, inside, strict=True)
        ]
        return chosen

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {
            "form": "labels",
            "options": options,
            "names": self.labels.names,
            "neighbours": self.labels.neighbours[self.index],
            "temperature": self.temperature,
            "prior": self.prior.tolist(),
            "nucleus": self.nucleus,
        }


def _calibrated(logprobs: np.ndarray, needed: np.ndarray) -> tuple[float, np.ndarray]:
    """The temperature and the prior under which what tasks needed is the most likely."""
    # Only tasks whose needed labels were all candidates can be fitted.
    known = np.isfinite(np.where(needed > 0, logprobs, 0)).all(axis=1) & (needed.sum(axis=1) > 0)
    logprobs, needed = logprobs[known], needed[known]
    if len(logprobs) == 0:
        return 1.0, np.zeros(needed.shape[1])
    candidate = np.isfinite(logprobs)
    penalty = PENALTY * len(logprobs)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = logprobs / np.exp(values[0])
        scores = scaled + values[1:]
        likely = np.where(needed > 0, log_softmax(scores, axis=1), 0)
        rest = softmax(scores, axis=1) - needed
        slope = np.append(-(rest * np.where(candidate, scaled, 0)).sum(), rest.sum(axis=0))
        return float(penalty * np.sum(values**2) - np.sum(needed * likely)), slope + 2 * penalty * values

    found = minimize(loss, np.zeros(1 + needed.shape[1]), jac=True, bounds=[(-4, 4)] * (1 + needed.shape[1])).x
    return float(np.exp(found[0])), found[1:]
