"""Cross-validates a way to route against the best single option and keeps it where it is better beyond chance.

Invariants: both are compared on tasks that they were not fitted on, on the same folds, and the best single option is
chosen within the folds too; on a tie the first option wins, and options stand in that order: the base model, what has
one adapter, sums of more and more."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.stats import permutation_test

from trainer.command import BadInput, tell_progress

from .labels import Labels
from .outcomes import Matrix, Outcomes, matrix_of
from .ridge import TIE, Ridge, folds_of

LEVEL = 0.05
RESAMPLES = 9999


class Fitted(Protocol):
    def predictions(self, texts: list[str]) -> np.ndarray:
        """Each option's predicted success, (texts, options)."""

    def to_json(self, options: list[str]) -> dict[str, Any]:
        """What TypeScript computes the predictions from."""


class Form(Protocol):
    """A way to predict each option's success from a text. What it chooses for itself (a penalty, say) it chooses on the
    tasks that it is fitted on: `rates[t, o]` is the share of trials that option o solved at task t."""

    name: str

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int) -> Fitted: ...


class Constant:
    """The option that solves the most tasks, whatever the text."""

    name = "constant"

    def __init__(self, rates: np.ndarray | None = None) -> None:
        self._rates = rates

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int) -> Constant:
        return Constant(rates.mean(axis=0))

    def predictions(self, texts: list[str]) -> np.ndarray:
        return np.tile(self._rates, (len(texts), 1))

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {"form": self.name}


def choices(predicted: np.ndarray) -> np.ndarray:
    """For each row of predictions the index of the first option that is as good as the best."""
    return (predicted >= predicted.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


def fit_router(given: Outcomes, *, folds: int, seed: int) -> dict[str, Any]:
    """The router as plain JSON: the form that was kept, its parameters, the cross-validation of both forms, and
    `constant` where routing does not help. Tells progress in models that are fitted. Raises BadInput."""
    if folds < 2:
        raise BadInput(f"--folds {folds}: cross-validation needs at least 2")
    matrix = matrix_of(given)
    try:
        return _fit(matrix, folds, seed)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise BadInput("tasks: too few texts hold a word; give the first user messages") from error
        raise


def _fit(matrix: Matrix, folds: int, seed: int) -> dict[str, Any]:
    texts, rates = matrix.texts, matrix.rates
    forms: list[Form] = [Constant(), Ridge() if matrix.labels is None else Labels(matrix)]
    splits = folds_of(texts, folds, seed)
    total = 2 * len(splits) + 1
    routed = {form.name: np.empty(len(rates)) for form in forms}
    for number, (train, test) in enumerate(splits):
        for offset, form in enumerate(forms, start=1):
            fitted = form.fit([texts[i] for i in train], rates[train], seed=seed)
            predicted = fitted.predictions([texts[i] for i in test])
            routed[form.name][test] = rates[test, choices(predicted)]
            tell_progress(2 * number + offset, total)
    constant, learned = routed.values()
    helps = _is_better(learned, constant, seed)
    kept = forms[helps]
    parameters = kept.fit(texts, rates, seed=seed).to_json(matrix.options)
    tell_progress(total, total)
    best = matrix.options[int(choices(rates.mean(axis=0, keepdims=True))[0])]
    return {
        **({} if helps else {"constant": best}),
        "crossValidation": {
            "helps": helps,
            "form": kept.name,
            "forms": [{"form": name, **_summary(values)} for name, values in routed.items()],
            "routed": _summary(routed[kept.name]),
            "base": _summary(rates[:, 0]),
            # Chosen within the folds as well: its success on the tasks that chose it would be too good.
            "bestSingle": {"option": best, **_summary(constant)},
            # What choosing the best option for every task would give: the bound on any router.
            "unionCeiling": _summary(rates.max(axis=1)),
        },
        "parameters": parameters,
    }


def _is_better(routed: np.ndarray, constant: np.ndarray, seed: int) -> bool:
    """A paired permutation test over the tasks that the two solve differently; of fewer than five nothing follows."""
    differences = (routed - constant)[np.abs(routed - constant) > TIE]
    if len(differences) < 5:
        return False
    test = permutation_test(
        (differences,),
        lambda sample, axis: sample.mean(axis=axis),
        vectorized=True,
        permutation_type="samples",
        alternative="greater",
        n_resamples=RESAMPLES,
        rng=seed,
    )
    return bool(test.pvalue <= LEVEL)


def _summary(values: np.ndarray) -> dict[str, Any]:
    """Mean over tasks, number of tasks, and the mean's standard error (0 for one task)."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "n": len(values), "standardError": float(error)}
