"""Fits the router and says whether it is worth using. Invariant: it routes only if that beat the best single option
on tasks that it was not fitted on; otherwise it is that option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .linear import STRENGTHS, LinearRouter, folds_of
from .outcomes import BadOutcomes, Outcomes


def _nobody_listens(_done: int, _total: int) -> None:
    """For who wants no progress."""


def fit_router(
    outcomes: Outcomes, *, folds: int, seed: int, progress: Callable[[int, int], None] = _nobody_listens
) -> dict[str, Any]:
    """The router as plain JSON: the linear model, its cross-validation, and `constant` where routing does not help.

    `progress` hears of every penalty that was tried for an option, over all folds: (done, total)."""
    if len(set(outcomes.texts)) < 2:
        raise BadOutcomes(f"tasks: {len(set(outcomes.texts))} different text; cross-validation needs at least 2")
    rates = np.array([[np.mean(trials) for trials in task] for task in outcomes.successes])
    splits = folds_of(outcomes.texts, folds, seed)
    total = (len(splits) + 1) * len(outcomes.options) * len(STRENGTHS)
    done = 0

    def tried() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    try:
        routed = _cross_validated(outcomes.texts, rates, splits, seed, tried)
        router = LinearRouter(outcomes.texts, rates, seed, tried)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise BadOutcomes("tasks: too few texts hold a word; give the first user messages") from error
        raise
    best = int(rates.mean(axis=0).argmax())
    helps = bool(routed.mean() > rates[:, best].mean())
    fitted = router.to_json(outcomes.options)
    if not helps:
        fitted["constant"] = outcomes.options[best]
    fitted["crossValidation"] = {
        "helps": helps,
        "routed": _summary(routed),
        "base": _summary(rates[:, 0]),
        "bestSingle": {"option": outcomes.options[best], **_summary(rates[:, best])},
        # What choosing the best option for every task would give: the bound on any router.
        "unionCeiling": _summary(rates.max(axis=1)),
    }
    return fitted


def _cross_validated(
    texts: list[str],
    rates: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    seed: int,
    tried: Callable[[], None],
) -> np.ndarray:
    """Per task, the success of the option that a router fitted without its fold chooses."""
    routed = np.empty(len(texts))
    for train, test in splits:
        router = LinearRouter([texts[i] for i in train], rates[train], seed, tried)
        routed[test] = rates[test, router.choices([texts[i] for i in test])]
    return routed


def _summary(values: np.ndarray) -> dict[str, Any]:
    """Mean over tasks, number of tasks, and the mean's standard error (0 for one task)."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "n": len(values), "standardError": float(error)}
