"""The router: where it routes, and where it stands back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainer.fit_router.fit import choices
from trainer.tests.router_contract import synthetic_outcomes
from trainer.tests.router_outcomes import NAMES, fit, matrix, scores


def test_it_routes_where_that_helps() -> None:
    router = fit(synthetic_outcomes())
    validation = router["crossValidation"]
    assert validation["helps"] is True
    assert "constant" not in router
    assert list(scores(router)) == NAMES
    assert validation["form"] in NAMES[1:]
    assert validation["routed"]["mean"] == max(scores(router).values())
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] + 0.15
    assert validation["routed"]["mean"] <= validation["unionCeiling"]["mean"]
    assert validation["routed"]["n"] == 60
    assert router["parameters"]["form"] == validation["form"]


def skills(tasks: int, seed: int, plain: float = 0.5) -> dict[str, Any]:
    """Three skills, of which a task needs none, one or two; base, the adapters and all their sums. The sum of
    all solves `plain` of the tasks that need none, and the others more: what is added up gets in each other's way."""
    generator = np.random.default_rng(seed)
    words = {"a": "and also", "b": "how much ?", "c": "if you may"}
    options = ["base", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]
    rows = []
    for index in range(tasks):
        needed = set(generator.choice(list("abc"), size=generator.choice(3, p=[0.4, 0.3, 0.3]), replace=False).tolist())
        said = [f"item {generator.integers(90)}", *(words[skill] for skill in sorted(needed)), "please"]
        luck = generator.random()
        outcomes = {
            option: [int(needed <= set(option.split("+")) and luck < (0.9 if len(option) < 5 or needed else plain))]
            for option in options
        }
        rows.append({"id": f"t{index}", "text": " ".join(said), "outcomes": outcomes})
    return {"options": options, "tasks": rows}


def test_two_hundred_tasks_suffice_for_base_adapters_and_sums() -> None:
    router = fit(skills(200, seed=1), folds=3)
    validation = router["crossValidation"]
    assert router["parameters"]["form"] == validation["form"] != "constant"
    assert validation["bestSingle"]["option"] == "a+b+c"
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] + 0.08
    assert validation["routed"]["mean"] > validation["unionCeiling"]["mean"] - 0.05


def nearly_equal(draw: int) -> dict[str, Any]:
    """Options that are equally good, each by chance on tasks of its own: there is much to gain, and nothing to find."""
    generator = np.random.default_rng(draw)
    raw = skills(60, seed=draw)
    for task in raw["tasks"]:
        if generator.random() < 0.5:
            lucky = generator.random(len(raw["options"])) < 0.6
        else:
            lucky = [generator.random() < 0.6] * len(raw["options"])
        task["outcomes"] = {name: [int(good)] for name, good in zip(raw["options"], lucky, strict=True)}
    return raw


def test_outcomes_that_have_nothing_to_do_with_texts_route_nothing() -> None:
    """In one draw of twenty it may."""
    kept = [fit(nearly_equal(draw), folds=3)["crossValidation"] for draw in range(20)]
    assert sum(one["helps"] for one in kept) <= 1
    best = [max(scores({"crossValidation": one}).values()) - one["bestSingle"]["mean"] for one in kept]
    assert sum(gain > 0 for gain in best) >= 5, "chance does offer gains"


def test_a_gain_that_may_be_chance_is_not_kept() -> None:
    """Two words of forty say something, on one task each."""
    texts = [f"word w{i % 40}" for i in range(80)]
    base = [1.0] * 80
    other = [float(i in (0, 40)) for i in range(80)]
    for i in (0, 40):
        base[i] = 0.0
    router = fit(matrix({"base": base, "a": other}, texts))
    assert router["constant"] == "base"


def test_the_best_option_is_chosen_within_the_folds() -> None:
    """Of many options that do equally well the one that was lucky on all tasks is not as good on others."""
    generator = np.random.default_rng(0)
    texts = [f"task number t{i}" for i in range(60)]
    columns = {name: (generator.random(60) < 0.5).astype(float).tolist() for name in ["base", *"abcde"]}
    router = fit(matrix(columns, texts), folds=3)
    best = router["crossValidation"]["bestSingle"]
    assert best["option"] == max(columns, key=lambda name: np.mean(columns[name]))
    assert best["mean"] == scores(router)["constant"] < np.mean(columns[best["option"]]) - 0.02


def test_standard_errors_are_those_of_the_mean_over_tasks() -> None:
    router = fit(matrix({"base": [0, 1, 1, 1], "a": [0, 0, 1, 0]}, ["w x", "w y", "w z", "v x"]), folds=2)
    assert router["crossValidation"]["base"] == {"mean": 0.75, "n": 4, "standardError": pytest.approx(0.25)}
    assert router["crossValidation"]["unionCeiling"]["mean"] == 0.75


def test_constant_columns_and_ties() -> None:
    """Equals: the first, which has fewer adapters."""
    texts = [f"word w{i % 4}" for i in range(12)]
    for base, other, expected in [([1.0], [1.0], "base"), ([0.0], [0.0], "base"), ([0.0], [1.0], "a")]:
        router = fit(matrix({"a": other * 12, "a+b": other * 12, "base": base * 12}, texts))
        assert router["constant"] == expected
    predicted = np.array([[0.5, 0.5 + 1e-12, 0.4], [0.1, 0.2, 0.2 + 1e-12], [0.1, 0.2, 0.3]])
    assert choices(predicted).tolist() == [0, 1, 2]
