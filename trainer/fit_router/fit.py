"""Fits every form of routing and keeps the best. Invariants: forms are compared on tasks that they were not fitted on,
all on the same folds, and the best single option, chosen within the folds too, is one of them; another form replaces
it only if its gain is above the best of all forms' on the same outcomes given to other texts, so that outcomes that
have nothing to do with the texts route nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .forms import TIE, Constant, Form, choices
from .labels import Labels
from .outcomes import BadOutcomes, Outcomes
from .ridge import Ridge
from .text import folds_of

SHUFFLES = 19
"""Times that outcomes are given to other texts: one draw of twenty, the real one among them, is the best by chance."""


def forms_of(outcomes: Outcomes) -> tuple[Form, ...]:
    """The first is what the others have to beat; of equals the one that is named first is kept."""
    return (Constant(), Ridge(), *((Labels(outcomes),) if outcomes.asked else ()))


def _nobody_listens(_done: int, _total: int) -> None:
    """For who wants no progress."""


def fit_router(
    outcomes: Outcomes, *, folds: int, seed: int, progress: Callable[[int, int], None] = _nobody_listens
) -> dict[str, Any]:
    """The router as plain JSON: the form that was kept, its parameters, the cross-validation of all forms, and
    `constant` where routing does not help.

    `progress` hears of every setting that a form has tried, over all folds: (done, total)."""
    if len(set(outcomes.texts)) < 2:
        raise BadOutcomes(f"tasks: {len(set(outcomes.texts))} different text; cross-validation needs at least 2")
    rates = np.array([[np.mean(trials) for trials in task] for task in outcomes.successes])
    forms = forms_of(outcomes)
    steps = {form.name: form.steps(len(outcomes.options)) for form in forms}
    splits = folds_of(outcomes.texts, folds, seed)
    # Whichever is kept is fitted once more, and shuffles end early where they find as much: the most that there may be.
    total = len(splits) * sum(steps.values()) * (1 + SHUFFLES) + max(steps.values())
    done = 0

    def tried() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    def compared(shuffled: np.ndarray) -> dict[str, np.ndarray]:
        return {form.name: _cross_validated(form, outcomes.texts, shuffled, splits, seed, tried) for form in forms}

    try:
        routed = compared(rates)
        kept = _best(forms, routed)
        if kept is not forms[0] and not _beyond_chance(_gain(forms, routed), rates, compared, forms, seed):
            kept = forms[0]
        fitted = kept.fit(outcomes.texts, rates, seed=seed, tried=tried)
    except ValueError as error:
        if "empty vocabulary" in str(error):
            raise BadOutcomes("tasks: too few texts hold a word; give the first user messages") from error
        raise
    best = outcomes.options[int(choices(rates.mean(axis=0, keepdims=True))[0])]
    helps = kept.name != Constant.name
    return {
        **({} if helps else {"constant": best}),
        "crossValidation": {
            "helps": helps,
            "form": kept.name,
            "forms": [{"form": name, **_summary(values)} for name, values in routed.items()],
            "routed": _summary(routed[kept.name]),
            "base": _summary(rates[:, 0]),
            # Chosen within the folds as well: its success on the tasks that chose it would be too good.
            "bestSingle": {"option": best, **_summary(routed[Constant.name])},
            # What choosing the best option for every task would give: the bound on any router.
            "unionCeiling": _summary(rates.max(axis=1)),
        },
        "parameters": fitted.to_json(outcomes.options),
    }


def _cross_validated(
    form: Form,
    texts: list[str],
    rates: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    seed: int,
    tried: Callable[[], None],
) -> np.ndarray:
    """Per task, the success of the option that the form chooses, fitted without the task's fold."""
    routed = np.empty(len(texts))
    for train, test in splits:
        fitted = form.fit([texts[i] for i in train], rates[train], seed=seed, tried=tried)
        routed[test] = rates[test, choices(fitted.predictions([texts[i] for i in test]))]
    return routed


def _best(forms: Sequence[Form], routed: dict[str, np.ndarray]) -> Form:
    """The form with the highest success; of equals the first."""
    means = {form.name: float(routed[form.name].mean()) for form in forms}
    # Means are not exact: equals have to stay equal.
    return next(form for form in forms if means[form.name] >= max(means.values()) - TIE)


def _gain(forms: Sequence[Form], routed: dict[str, np.ndarray]) -> float:
    """What the best form has over the first."""
    return float((routed[_best(forms, routed).name] - routed[forms[0].name]).mean())


def _beyond_chance(
    gain: float,
    rates: np.ndarray,
    compared: Callable[[np.ndarray], dict[str, np.ndarray]],
    forms: Sequence[Form],
    seed: int,
) -> bool:
    """A permutation test at 5%, over the choice among the forms as well: no shuffle gains as much."""
    generator = np.random.default_rng(seed)
    return all(_gain(forms, compared(rates[generator.permutation(len(rates))])) < gain - TIE for _ in range(SHUFFLES))


def _summary(values: np.ndarray) -> dict[str, Any]:
    """Mean over tasks, number of tasks, and the mean's standard error (0 for one task)."""
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "n": len(values), "standardError": float(error)}
