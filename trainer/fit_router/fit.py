"""Cross-validates a way to route against the best single option and keeps it where it is better beyond chance.

Invariants: both are compared on tasks that they were not fitted on, on the same folds, and the best single option is
chosen within the folds too; on a tie the first option wins, and options stand in that order: the base model, what has
one adapter, sums of more and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.stats import permutation_test
from sklearn.model_selection import GroupKFold

from .outcomes import BadOutcomes, Outcomes

TIE = 1e-9
"""Predictions that differ by no more are equal: the last digits depend on who computes them."""

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

    def fit(self, texts: list[str], rates: np.ndarray, *, seed: int) -> _FittedConstant:
        return _FittedConstant(rates.mean(axis=0))


class _FittedConstant:
    def __init__(self, rates: np.ndarray) -> None:
        self.rates = rates

    def predictions(self, texts: list[str]) -> np.ndarray:
        return np.tile(self.rates, (len(texts), 1))

    def to_json(self, options: list[str]) -> dict[str, Any]:
        return {"form": Constant.name}


def form_of(outcomes: Outcomes) -> Form:
    """What is compared with Constant."""
    from .labels import Labels
    from .ridge import Ridge

    return Ridge() if outcomes.labels is None else Labels(outcomes)


def choices(predicted: np.ndarray) -> np.ndarray:
    """For each row of predictions the index of the first option that is as good as the best."""
    return (predicted >= predicted.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


def folds_of(texts: list[str], folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) indices; identical texts are in one fold. At most as many folds as there are different texts."""
    groups = np.unique(texts, return_inverse=True)[1]
    splitter = GroupKFold(min(folds, int(groups.max()) + 1), shuffle=True, random_state=seed)
    return list(splitter.split(texts, groups=groups))


def fit_router(
    outcomes: Outcomes, *, folds: int, seed: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    """The router as plain JSON: the form that was kept, its parameters, the cross-validation of both forms, and
    `constant` where routing does not help. `progress` is told of every model that is fitted."""
    if len(set(outcomes.texts)) < 2:
        raise BadOutcomes(f"tasks: {len(set(outcomes.texts))} different text; cross-validation needs at least 2")
    rates = np.array([[np.mean(trials) for trials in task] for task in outcomes.successes])
    constant, form = Constant(), form_of(outcomes)
    splits = folds_of(outcomes.texts, folds, seed)
    total = 2 * len(splits) + 1
    routed = {one.name: np.empty(len(rates)) for one in (constant, form)}
    try:
        for number, (train, test) in enumerate(splits):
            for offset, one in enumerate((constant, form)):
                fitted = one.fit([outcomes.texts[i] for i in train], rates[train], seed=seed)
                predicted = fitted.predictions([outcomes.texts[i] for i in test])
                routed[one.name][test] = rates[test, choices(predicted)]
                progress(2 * number + offset + 1, total)
        helps = _is_better(routed[form.name], routed[constant.name], seed)
        kept = form if helps else constant
        parameters = kept.fit(outcomes.texts, rates, seed=seed).to_json(outcomes.options)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise BadOutcomes("tasks: too few texts hold a word; give the first user messages") from error
        raise
    progress(total, total)
    best = outcomes.options[int(choices(rates.mean(axis=0, keepdims=True))[0])]
    return {
        **({} if helps else {"constant": best}),
        "crossValidation": {
            "helps": helps,
            "form": kept.name,
            "forms": [{"form": name, **_summary(values)} for name, values in routed.items()],
            "routed": _summary(routed[kept.name]),
            "base": _summary(rates[:, 0]),
            # Chosen within the folds as well: its success on the tasks that chose it would be too good.
            "bestSingle": {"option": best, **_summary(routed[constant.name])},
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
