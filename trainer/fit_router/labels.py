"""The base model as classifier: calibrated probabilities of labels, and the sum of those that are in the nucleus.
Invariants: src/routing/label-tokens.ts chooses the same of the same log-probs; a text to which the base model names
no label is left to the base model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from .outcomes import BASE, Matrix
from .ridge import TIE

NUCLEI = (0.99, 0.95, 0.9, 0.8, 0.65, 0.5, 0.3)
"""Candidates for p; on a tie the first, and fewer neighbours before more."""

PENALTY = 0.01
"""On the prior and on the logarithm of the temperature: a label that never was right keeps some probability."""


class Labels:
    """Temperature, prior, k and p, all chosen on the tasks that it is fitted on: they are few numbers."""

    name = "labels"

    def __init__(self, outcomes: Matrix) -> None:
        assert outcomes.labels is not None
        self.answers, self.options = outcomes.labels, outcomes.options
        self._logprobs = dict(zip(outcomes.texts, outcomes.labels.logprobs, strict=True))
        self._option_of = {frozenset(_parts(option)): n for n, option in enumerate(outcomes.options)}

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int) -> FittedLabels:
        needed = np.array([self._needed(row) for row in rates])
        best: FittedLabels | None = None
        most = -1.0
        for index in range(len(self.answers.neighbours)):
            logprobs = self.logprobs(texts, index)
            temperature, prior = _calibrated(logprobs, needed)
            for nucleus in NUCLEI:
                fitted = FittedLabels(self, index, temperature, prior, nucleus)
                chosen = fitted.chosen(logprobs)
                solved = float(rates[np.arange(len(texts)), chosen].mean())
                if solved > most + TIE:
                    best, most = fitted, solved
        assert best is not None
        return best

    def logprobs(self, texts: list[str], index: int) -> np.ndarray:
        """Log-probs [texts, names]; -inf of what was no candidate, NaN in rows that could not be labelled."""
        rows = []
        for text in texts:
            row = np.array([-np.inf if one is None else one for one in self._logprobs[text][index]])
            rows.append(row if np.isfinite(row).any() else np.full(len(row), np.nan))
        return np.array(rows)

    def option(self, names: list[str]) -> int:
        """Of the most likely names first: the sum of as many of them as there is a sum of."""
        for count in range(len(names), 0, -1):
            option = self._option_of.get(frozenset(names[:count]))
            if option is not None:
                return option
        raise ValueError(f"options: none is {names[0]!r} alone; every adapter is an option")

    def _needed(self, rates: np.ndarray) -> np.ndarray:
        """The parts of the first option, and so of the smallest, that solved the task; nothing if none did."""
        solved = next(
            (parts for n, option in enumerate(self.options) if rates[n] > 0.5 and (parts := _parts(option))), ()
        )
        needed = np.array([float(name in solved) for name in self.answers.names])
        return needed / max(needed.sum(), 1)


class FittedLabels:
    def __init__(self, form: Labels, index: int, temperature: float, prior: np.ndarray, nucleus: float) -> None:
        self.form, self.index = form, index
        self.temperature, self.prior, self.nucleus = temperature, prior, nucleus

    def chosen(self, logprobs: np.ndarray) -> np.ndarray:
        """Of each row the option."""
        names = self.form.answers.names
        chosen = np.full(len(logprobs), self.form.options.index(BASE))
        known = ~np.isnan(logprobs).any(axis=1)
        likely = softmax(logprobs[known] / self.temperature + self.prior, axis=1)
        order = np.argsort(-np.round(likely, 9), axis=1, kind="stable")
        ordered = np.take_along_axis(likely, order, axis=1)
        inside = np.cumsum(ordered, axis=1) - ordered < self.nucleus - TIE
        # Only few nuclei are different from one another.
        nuclei, which = np.unique(np.where(inside, order, -1), axis=0, return_inverse=True)
        found = [
            self.form.options.index(BASE)
            if names[nucleus[0]] == BASE
            else self.form.option([names[n] for n in nucleus if n >= 0 and names[n] != BASE])
            for nucleus in nuclei
        ]
        chosen[known] = np.array(found, dtype=int)[which.ravel()]
        return chosen

    def predictions(self, texts: list[str]) -> np.ndarray:
        chosen = self.chosen(self.form.logprobs(texts, self.index))
        predicted = np.zeros((len(texts), len(self.form.options)))
        predicted[np.arange(len(texts)), chosen] = 1
        return predicted

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {
            "form": Labels.name,
            "options": options,
            "names": self.form.answers.names,
            "neighbours": self.form.answers.neighbours[self.index],
            "temperature": self.temperature,
            "prior": self.prior.tolist(),
            "nucleus": self.nucleus,
        }


def _parts(option: str) -> list[str]:
    return option.split("+")


def _calibrated(logprobs: np.ndarray, needed: np.ndarray) -> tuple[float, np.ndarray]:
    """The temperature and the prior under which what tasks needed is the most likely."""
    # What was needed can be said only where it was a candidate.
    known = np.isfinite(np.where(needed > 0, logprobs, 0)).all(axis=1) & (needed.sum(axis=1) > 0)
    logprobs, needed = logprobs[known], needed[known]

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        scores = logprobs / np.exp(values[0]) + values[1:]
        likely = np.where(needed > 0, log_softmax(scores, axis=1), 0)
        rest = softmax(scores, axis=1) - needed
        slope = np.append(-np.where(np.isfinite(logprobs), rest * scaled(values[0]), 0).sum(), rest.sum(axis=0))
        penalty = PENALTY * len(logprobs)
        return float(penalty * np.sum(values**2) - np.sum(needed * likely)), slope + 2 * penalty * values

    def scaled(heat: float) -> np.ndarray:
        return np.where(np.isfinite(logprobs), logprobs, 0) / np.exp(heat)

    if len(logprobs) == 0:
        return 1.0, np.zeros(needed.shape[1])
    found = minimize(loss, np.zeros(1 + needed.shape[1]), jac=True, bounds=[(-4, 4)] * (1 + needed.shape[1])).x
    return float(np.exp(found[0])), found[1:]
