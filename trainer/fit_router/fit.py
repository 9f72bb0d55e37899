"""Cross-validates a way to route against the best single option and keeps it where it is better beyond chance.

Invariants: both are compared on tasks that they were not fitted on, on the same folds, and the best single option is
chosen within the folds too; on a tie the first option wins, and options stand in that order: the base model, what has
one adapter, sums of more and more."""

from typing import Any

import numpy as np
from pydantic import Field
from scipy.stats import permutation_test

from trainer.command import BadInput, tell_progress

from .labels import Labels
from .outcomes import Outcomes
from .ridge import TIE, RidgeModel, choices, folds_of

LEVEL = 0.05
RESAMPLES = 9999


class Question(Outcomes):
    """The outcome matrix and the router's options, named as in a campaign file."""

    folds: int = Field(default=5, ge=2)
    seed: int = 1


def fit_router(given: Question) -> dict[str, Any]:
    """Returns the router as plain JSON: the form that was kept, its parameters, the cross-validation of both forms, and
    `constant` if routing does not help. Reports progress in folds. Raises BadInput."""
    try:
        return _fit(given)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise BadInput("tasks: too few texts hold a word; give the first user messages") from error
        raise


def _fit(given: Question) -> dict[str, Any]:
    texts, rates, seed = given.texts, given.rates, given.seed
    labels = None if given.labels is None else Labels(given)

    def fitted(tasks: np.ndarray | range) -> Any:
        of_tasks = [texts[i] for i in tasks], rates[list(tasks)]
        return labels.fit(*of_tasks) if labels else RidgeModel.fit(*of_tasks, seed=seed)

    splits = folds_of(texts, given.folds, seed)
    constant, routed = np.empty(len(rates)), np.empty(len(rates))
    for number, (train, test) in enumerate(splits, start=1):
        constant[test] = rates[test, _best(rates[train])]
        routed[test] = rates[test, fitted(train).chosen([texts[i] for i in test])]
        tell_progress(number, len(splits) + 1)
    helps, best = _is_better(routed, constant, seed), given.options[_best(rates)]
    form = "labels" if labels else "ridge"
    parameters = fitted(range(len(texts))).to_json(given.options) if helps else {"form": "constant"}
    tell_progress(len(splits) + 1, len(splits) + 1)
    return {
        **({} if helps else {"constant": best}),
        "crossValidation": {
            "helps": helps,
            "form": parameters["form"],
            "forms": [{"form": "constant", **_summary(constant)}, {"form": form, **_summary(routed)}],
            "routed": _summary(routed if helps else constant),
            "base": _summary(rates[:, 0]),
            # Chosen within the folds as well: its success on the tasks that chose it would be too good.
            "bestSingle": {"option": best, **_summary(constant)},
            # The success of the best option for every task, an upper bound for any router.
            "unionCeiling": _summary(rates.max(axis=1)),
        },
        "parameters": parameters,
    }


def _best(rates: np.ndarray) -> int:
    """The option that solves the most tasks."""
    return int(choices(rates.mean(axis=0, keepdims=True))[0])


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
