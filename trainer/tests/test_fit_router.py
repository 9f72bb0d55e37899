"""The router: where it routes, where it stands back, what it refuses, and the contract with TypeScript."""

import copy
import json
import re
from typing import Any

import numpy as np
import pytest

from trainer.command import REFUSED
from trainer.fit_router.fit import fit_router
from trainer.tests.router_contract import CASES, FILE, contract, outcomes_of, synthetic_outcomes


def fit(raw: dict[str, Any], folds: int = 5) -> dict[str, Any]:
    return fit_router(outcomes_of({**raw, "folds": folds}))


def matrix(columns: dict[str, list[float]], texts: list[str]) -> dict[str, Any]:
    tasks = [
        {"id": f"s{i}", "text": text, "outcomes": {name: [column[i]] for name, column in columns.items()}}
        for i, text in enumerate(texts)
    ]
    return {"options": list(columns), "tasks": tasks}


def scores(router: dict[str, Any]) -> dict[str, float]:
    return {one["form"]: one["mean"] for one in router["crossValidation"]["forms"]}


def test_it_routes_where_that_helps():
    router = fit(synthetic_outcomes())
    validation = router["crossValidation"]
    assert validation["helps"] is True and "constant" not in router
    assert list(scores(router)) == ["constant", "ridge"]
    assert router["parameters"]["form"] == validation["form"] == "ridge"
    assert validation["routed"]["mean"] == max(scores(router).values()) > validation["bestSingle"]["mean"] + 0.15
    assert validation["routed"]["mean"] <= validation["unionCeiling"]["mean"]
    assert validation["routed"]["n"] == 60


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


def test_two_hundred_tasks_suffice_for_base_adapters_and_sums():
    validation = fit(skills(200, seed=1), folds=3)["crossValidation"]
    assert validation["form"] != "constant" and validation["bestSingle"]["option"] == "a+b+c"
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


def test_outcomes_that_have_nothing_to_do_with_texts_route_nothing():
    """In one draw of twenty it may."""
    kept = [fit(nearly_equal(draw), folds=3)["crossValidation"] for draw in range(20)]
    assert sum(one["helps"] for one in kept) <= 1
    best = [max(scores({"crossValidation": one}).values()) - one["bestSingle"]["mean"] for one in kept]
    assert sum(gain > 0 for gain in best) >= 5, "chance does offer gains"


def test_the_best_option_is_chosen_within_the_folds():
    """Among many equally good options, the one with the best result by chance is worse on other tasks."""
    generator = np.random.default_rng(0)
    columns = {name: (generator.random(60) < 0.5).astype(float).tolist() for name in ["base", *"abcde"]}
    router = fit(matrix(columns, [f"task number t{i}" for i in range(60)]), folds=3)
    best = router["crossValidation"]["bestSingle"]
    assert best["option"] == max(columns, key=lambda name: np.mean(columns[name]))
    assert best["mean"] == scores(router)["constant"] < np.mean(columns[best["option"]]) - 0.02


def test_the_contract_fixture():
    """It is current (python -m trainer.tests.router_contract); test/contract/router.test.ts applies it."""
    stored, made = json.loads(FILE.read_text()), contract()
    model = stored["router"]["parameters"]
    assert [case["text"] for case in stored["cases"]] == CASES
    assert model["words"]["vocabulary"] == made["router"]["parameters"]["words"]["vocabulary"]
    for kept, case in zip(stored["cases"], made["cases"], strict=True):
        # Another BLAS, other last digits.
        assert kept["predictions"] == pytest.approx(case["predictions"], abs=1e-4)
        assert kept["option"] == case["option"]
    assert len({case["option"] for case in stored["cases"]}) > 1


def labelled(tasks: int, *, failed: int = 0, equal: bool = False) -> dict[str, Any]:
    """Makes labels that name the needed adapters, with a bias towards the second label."""
    generator = np.random.default_rng(4)
    names, options = ["base", "a", "b"], ["base", "a", "b", "a+b"]
    rows, logprobs = [], []
    for index in range(tasks):
        needed = [{"base"}, {"a"}, {"b"}, {"a", "b"}][generator.integers(4)]
        solving = [option for option in options if needed == {*option.split("+")}]
        outcomes = {option: [float(option in solving)] for option in options}
        heard = [2.0 * (name in needed) + 1.5 * (name == "a") - 3 + generator.normal() / 4 for name in names]
        many = heard if index >= failed else [None] * 3
        # A prompt with few neighbours may lack a candidate.
        logprobs.append([many if equal else [*heard[:2], None], many])
        rows.append({"id": f"t{index}", "text": f"request {index}", "outcomes": outcomes})
    labels = {"names": names, "neighbours": [4, 16], "logprobs": logprobs}
    return {"options": options, "tasks": rows, "labels": labels}


def test_labels_are_calibrated_and_one_that_is_missing_is_left_to_the_base_model():
    router = fit(labelled(80))
    validation, parameters = router["crossValidation"], router["parameters"]
    assert validation["form"] == parameters["form"] == "labels"
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] - 1e-9
    assert parameters["neighbours"] == 16
    prior = dict(zip(parameters["names"], parameters["prior"], strict=True))
    assert prior["a"] < prior["b"]
    assert scores(fit(labelled(80, failed=8, equal=True)))["labels"] < scores(router)["labels"] - 0.04


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["options"], ["a", "b"], "'base' is missing"),
        (["tasks", 3, "outcomes", "a"], [2], r"tasks.3.outcomes.a.0 2: must be less than or equal to 1"),
        (["tasks", 3, "outcomes"], {"base": [1]}, r"tasks.3.outcomes.a: required; evaluate every option"),
        (["tasks"], [{"text": "same", "outcomes": {o: [1] for o in ("base", "a", "b", "a+b")}}], "one text"),
    ],
)
def test_bad_outcomes_are_refused_in_one_line(ask, capsys, path, value, said):
    raw = copy.deepcopy(labelled(12))
    place = raw
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert ask("fit-router", raw) == (REFUSED, None)
    err = capsys.readouterr().err
    assert re.search(said, err) and err.startswith("fit-router: ") and err.count("\n") == 1
