"""The router: what it learns, what it refuses, when it stands back, and the contract with TypeScript."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge

from trainer.fit_router import main
from trainer.fit_router.fit import SHUFFLES, fit_router, forms_of
from trainer.fit_router.forms import choices
from trainer.fit_router.nearest import SETTINGS, NearestTasks
from trainer.fit_router.outcomes import BadOutcomes
from trainer.fit_router.ridge import _prepared
from trainer.fit_router.text import folds_of
from trainer.refusal import REFUSED
from trainer.tests.router_contract import CASES, FILE, contract, outcomes_of, synthetic_outcomes

ROOT = Path(__file__).resolve().parents[2]


def fit(raw: dict[str, Any], folds: int = 5) -> dict[str, Any]:
    return fit_router(outcomes_of(raw), folds=folds, seed=1)


def matrix(columns: dict[str, list[float]], texts: list[str]) -> dict[str, Any]:
    tasks = [
        {"id": f"s{i}", "text": text, "outcomes": {name: [column[i]] for name, column in columns.items()}}
        for i, text in enumerate(texts)
    ]
    return {"options": list(columns), "tasks": tasks}


NAMES = ["constant", "ridge", "nearest"]


def scores(router: dict[str, Any]) -> dict[str, float]:
    return {one["form"]: one["mean"] for one in router["crossValidation"]["forms"]}


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


def test_two_hundred_tasks_suffice_for_base_adapters_and_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.SHUFFLES", 2)  # seconds
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
    """In one draw of twenty it may; a gain of 1.645 standard errors is there in more."""
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


def test_every_form_predicts_rates_that_are_there_for_texts_that_say_nothing() -> None:
    texts = [f"word w{i}" for i in range(20)]
    rates = np.array([[float(i % 2), 1.0] for i in range(20)])
    for form in forms_of(outcomes_of(synthetic_outcomes())):
        predicted = form.fit(texts, rates, seed=1, tried=lambda: None).predictions(["", "unknown"])
        assert np.isfinite(predicted).all()
        assert predicted == pytest.approx(np.array([[0.5, 1.0]] * 2), abs=0.06), form.name


def test_a_ridge_is_a_ridge() -> None:
    texts = ["red lamp", "blue lamp", "red chair", "blue chair", "green"]
    rates = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    words, solve = _prepared(texts, rates)
    coef, intercepts = solve(3.0)
    by_hand = SklearnRidge(alpha=3.0).fit(words.features.toarray(), rates)
    assert pytest.approx(by_hand.coef_) == coef.T
    assert intercepts == pytest.approx(by_hand.intercept_)


def test_neighbours_vote_and_all_tasks_are_as_near_as_the_last_of_them() -> None:
    texts = ["cancel x", "cancel x", "cancel y", *(f"rush {i}" for i in range(7))]
    tasks = NearestTasks(texts, np.array([[1.0], [1.0], [0.0], *([[0.0]] * 7)]))
    similar = tasks.similarities(["cancel x", "nothing known"])
    assert similar[0, 0] == similar[0, 1] == 1.0 > similar[0, 2] > 0 == similar[0, 3]
    # One neighbour is as good as the other: both vote.
    assert tasks.votes(similar, (1, 2))[:, 0] == pytest.approx([(2 + 2 * 0.2) / 4, 0.2])
    assert tasks.votes(similar, (3, 1))[0, 0] == pytest.approx((2 + 0.2) / 4)
    assert tasks.votes(similar, SETTINGS[0])[0, 0] == pytest.approx((2 + 30 * 0.2) / 40)


def test_identical_texts_are_never_on_both_sides_of_a_fold() -> None:
    texts = [f"text {i % 7}" for i in range(40)]
    splits = folds_of(texts, 5, seed=1)
    assert len(splits) == 5
    assert sorted(i for _, test in splits for i in test) == list(range(40))
    for train, test in splits:
        assert not {texts[i] for i in train} & {texts[i] for i in test}


def test_deterministic_as_a_command(tmp_path: Path) -> None:
    source = tmp_path / "outcomes.json"
    source.write_text(json.dumps(synthetic_outcomes()))
    written = []
    for name in ("a.json", "b.json"):
        command = [sys.executable, "-m", "trainer", "fit-router", "--in", str(source), "--out", str(tmp_path / name)]
        done = subprocess.run([*command, "--folds", "4", "--seed", "2"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        written.append((tmp_path / name).read_bytes())
        told = [json.loads(line) for line in done.stdout.splitlines()]
        # 4 folds of 1 + 7 penalties + 12 settings, with every shuffle again; and the kept form once more.
        assert told == [{"done": n + 1, "total": 4 * 20 * (1 + SHUFFLES) + 12} for n in range(len(told))]
        assert len(told) > 4 * 20 * (1 + SHUFFLES)
    assert written[0] == written[1]


def test_folds_and_seed_are_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.fit_router", lambda _, progress, **given: given)
    source, out = tmp_path / "outcomes.json", tmp_path / "router.json"
    source.write_text(json.dumps(synthetic_outcomes()))
    assert main(["--in", str(source), "--out", str(out), "--folds", "4", "--seed", "2"]) == 0
    assert json.loads(out.read_text()) == {"folds": 4, "seed": 2}


def by_the_file(model: dict[str, Any], text: str) -> dict[str, float]:
    """What src/routing/learned does, from the file alone."""
    words = re.findall(model["words"]["tokenPattern"], text.lower())
    terms = {" ".join(words[i : i + n]) for n in (1, 2) for i in range(len(words) - n + 1)}
    vocabulary = model["words"]["vocabulary"]
    present = [vocabulary[term] for term in terms if term in vocabulary]
    if model["form"] != "nearest":
        sums = {o["name"]: o["intercept"] + sum(o["coef"][i] for i in present) for o in model["options"]}
        return sums
    idf, rates = np.array(model["idf"]), np.array([task["rates"] for task in model["tasks"]])

    def length(held: list[int]) -> float:
        return float(np.sqrt(np.sum(idf[held] ** 2))) or 1.0

    shared = [np.sum(idf[sorted({*present} & {*task["words"]})] ** 2) for task in model["tasks"]]
    lengths = [length(present) * length(task["words"]) for task in model["tasks"]]
    similar = np.round(np.divide(shared, lengths), 9)
    voting = similar >= np.sort(similar)[-min(model["neighbours"], len(similar))]
    votes = (rates[voting].sum(axis=0) + model["prior"] * rates.mean(axis=0)) / (voting.sum() + model["prior"])
    return dict(zip(model["options"], votes.tolist(), strict=True))


def test_the_contract_fixture() -> None:
    """It is current (python -m trainer.tests.router_contract), and its file forms give what the forms predict."""
    stored = json.loads(FILE.read_text())
    assert [one["form"] for one in stored] == NAMES[1:]
    for one, made in zip(stored, contract(), strict=True):
        model = one["router"]["parameters"]
        assert [case["text"] for case in one["cases"]] == CASES
        assert model["words"]["vocabulary"] == made["router"]["parameters"]["words"]["vocabulary"]
        for kept, case in zip(one["cases"], made["cases"], strict=True):
            # Another BLAS, other last digits.
            assert kept["predictions"] == pytest.approx(case["predictions"], abs=1e-4)
            assert by_the_file(model, kept["text"]) == pytest.approx(kept["predictions"], abs=1e-9)
            assert kept["option"] == case["option"]
        assert len({case["option"] for case in one["cases"]}) > 1


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["options"], ["a", "b"], "'base' is missing"),
        (["options"], ["base", "base"], "different names"),
        (["tasks"], [], r"tasks \[\]: .*at least 1 item"),
        (["tasks", 0, "text"], None, r"tasks.0.text null: must be a valid string"),
        (["tasks", 3, "outcomes", "cancels"], [], r"tasks.3.outcomes.cancels \[\]: .*at least 1 item"),
        (["tasks", 3, "outcomes", "cancels"], [2], r"tasks.3.outcomes.cancels.0 2: must be less than or equal to 1"),
        (["tasks", 3, "outcomes", "cancels"], [1, -1], r"tasks.3.outcomes.cancels.1 -1: must be greater than or equal"),
        (["tasks", 3, "outcomes", "cancels"], None, r"tasks.3.outcomes.cancels null: must be a valid array"),
        (["tasks", 3, "outcomes"], {"base": [1]}, r"tasks.3.outcomes.cancels: required; evaluate every option"),
        (["tasks", 3, "outcomes"], None, r"tasks.3.outcomes null"),
    ],
)
def test_bad_outcomes(path: list[Any], value: Any, said: str) -> None:
    raw = copy.deepcopy(synthetic_outcomes())
    place = raw
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(BadOutcomes, match=said):
        outcomes_of(raw)


def test_texts_that_cannot_be_told_apart() -> None:
    with pytest.raises(BadOutcomes, match="1 different text"):
        fit(matrix({"base": [0, 1], "a": [1, 0]}, ["same", "same"]))
    with pytest.raises(BadOutcomes, match="too few texts hold a word"):
        fit(matrix({"base": [0, 1], "a": [1, 0]}, ["", " "]))


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "trainer",
        "fit-router",
        "--in",
        str(tmp_path / "no.json"),
        "--out",
        str(tmp_path / "r"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == REFUSED
    assert done.stderr.startswith("fit-router: --in ")
    assert len(done.stderr.splitlines()) == 1


def labelled(tasks: int, *, failed: int = 0) -> dict[str, Any]:
    """The base model hears what a task needs, but always says the second label somewhat too loud."""
    generator = np.random.default_rng(4)
    names, options = ["base", "a", "b"], ["base", "a", "b", "a+b"]
    rows, logprobs = [], []
    for index in range(tasks):
        needed = [{"base"}, {"a"}, {"b"}, {"a", "b"}][generator.integers(4)]
        solving = [option for option in options if needed == {*option.split("+")}]
        outcomes = {option: [float(option in solving)] for option in options}
        heard = [2.0 * (name in needed) + 1.5 * (name == "a") - 3 + generator.normal() / 4 for name in names]
        # With few neighbours one may be no candidate.
        few: list[float | None] = [heard[0], heard[1], None]
        logprobs.append([few, heard if index >= failed else [None] * 3])
        rows.append({"id": f"t{index}", "text": f"request {index}", "outcomes": outcomes})
    asked = {"names": names, "neighbours": [4, 16], "logprobs": logprobs}
    return {"options": options, "tasks": rows, "asked": asked}


def test_labels_are_calibrated_and_the_nucleus_is_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.SHUFFLES", 2)
    router = fit(labelled(80))
    validation = router["crossValidation"]
    assert list(scores(router)) == [*NAMES, "labels"]
    assert validation["form"] == router["parameters"]["form"] == "labels"
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] - 1e-9
    assert router["parameters"]["neighbours"] == 16
    prior = dict(zip(router["parameters"]["names"], router["parameters"]["prior"], strict=True))
    assert prior["a"] < prior["b"]


def test_a_text_without_labels_is_a_failure_and_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.SHUFFLES", 2)
    raw = labelled(80, failed=8)
    for one in raw["asked"]["logprobs"]:
        one[0] = one[1]
    whole, broken = (scores(fit(one))["labels"] for one in (labelled(80), raw))
    assert broken < whole - 0.04


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"names": ["a", "base", "b"]}, "asked.names 'a': name the base first"),
        ({"names": ["base", "a", "c"]}, "asked.names 'c'"),
        ({"neighbours": [4]}, "asked.logprobs: give one list a task"),
    ],
)
def test_bad_labels(changes: dict[str, Any], said: str) -> None:
    raw = labelled(12)
    with pytest.raises(BadOutcomes, match=said):
        outcomes_of({**raw, "asked": {**raw["asked"], **changes}})
