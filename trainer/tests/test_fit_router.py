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
from sklearn.linear_model import LogisticRegression

from trainer.fit_router import main
from trainer.fit_router.fit import fit_router
from trainer.fit_router.linear import LinearRouter, _fit, folds_of
from trainer.fit_router.outcomes import BadOutcomes
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


def test_it_routes_where_that_helps() -> None:
    router = fit(synthetic_outcomes())
    validation = router["crossValidation"]
    assert validation["helps"] is True
    assert "constant" not in router
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] + 0.15
    assert validation["routed"]["mean"] <= validation["unionCeiling"]["mean"]
    assert validation["routed"]["n"] == 60
    assert [option["name"] for option in router["options"]] == ["base", "cancels", "returns", "useless"]


def test_it_is_the_best_single_option_where_routing_does_not_help() -> None:
    """Outcomes that have nothing to do with the texts: every text is another one."""
    generator = np.random.default_rng(0)
    texts = [f"task number t{i}" for i in range(60)]
    columns = {name: (generator.random(60) < rate).astype(float).tolist() for name, rate in [("base", 0.4), ("a", 0.7)]}
    router = fit(matrix(columns, texts))
    assert router["crossValidation"]["helps"] is False
    assert router["constant"] == "a"
    assert router["crossValidation"]["bestSingle"]["option"] == "a"


def test_standard_errors_are_those_of_the_mean_over_tasks() -> None:
    router = fit(matrix({"base": [0, 1, 1, 1], "a": [0, 0, 1, 0]}, ["w x", "w y", "w z", "v x"]), folds=2)
    assert router["crossValidation"]["base"] == {"mean": 0.75, "n": 4, "standardError": pytest.approx(0.25)}
    assert router["crossValidation"]["unionCeiling"]["mean"] == 0.75


def test_constant_columns_and_ties() -> None:
    texts = [f"word w{i % 4}" for i in range(12)]
    for base, other, expected in [([1.0], [1.0], "base"), ([0.0], [0.0], "base"), ([0.0], [1.0], "a")]:
        router = fit(matrix({"a": other * 12, "base": base * 12}, texts))
        assert router["constant"] == expected
        assert [option["name"] for option in router["options"]] == ["base", "a"]
        assert all(np.isfinite(option["intercept"]) for option in router["options"])


def test_identical_texts_are_never_on_both_sides_of_a_fold() -> None:
    texts = [f"text {i % 7}" for i in range(40)]
    splits = folds_of(texts, 5, seed=1)
    assert len(splits) == 5
    assert sorted(i for _, test in splits for i in test) == list(range(40))
    for train, test in splits:
        assert not {texts[i] for i in train} & {texts[i] for i in test}


def test_shares_of_trials_are_weights() -> None:
    """A task solved in 1 of 4 trials counts as four tasks of a quarter's weight, one of them a success."""
    router = LinearRouter(["red lamp", "blue lamp", "red chair"], np.array([[0.25], [1.0], [0.0]]), seed=1)
    features = router.vectorizer.transform(["red lamp", "blue lamp", "red chair"])
    coef, intercept = _fit(features, np.array([0.25, 1.0, 0.0]), strength=1.0)
    rows = [0, 0, 0, 0, 1, 2]
    by_hand = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8)
    by_hand.fit(features[rows], [1, 0, 0, 0, 1, 0], sample_weight=[0.25] * 4 + [1, 1])
    assert coef == pytest.approx(by_hand.coef_[0], abs=1e-4)
    assert intercept == pytest.approx(by_hand.intercept_[0], abs=1e-4)


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
        assert told == [{"done": n + 1, "total": len(told)} for n in range(len(told))]
        assert len(told) == (4 + 1) * 4 * 4  # folds and the whole, options, penalties
    assert written[0] == written[1]


def test_folds_and_seed_are_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.fit_router", lambda _, progress, **given: given)
    source, out = tmp_path / "outcomes.json", tmp_path / "router.json"
    source.write_text(json.dumps(synthetic_outcomes()))
    assert main(["--in", str(source), "--out", str(out), "--folds", "4", "--seed", "2"]) == 0
    assert json.loads(out.read_text()) == {"folds": 4, "seed": 2}


def by_the_file(router: dict[str, Any], text: str) -> dict[str, float]:
    """What src/routing/linear/model.ts does, from the file alone."""
    words = re.findall(router["tokenPattern"], text.lower())
    terms = {" ".join(words[i : i + n]) for n in (1, 2) for i in range(len(words) - n + 1)}
    present = [router["vocabulary"][term] for term in terms if term in router["vocabulary"]]
    logits = {o["name"]: o["intercept"] + sum(o["coef"][i] for i in present) for o in router["options"]}
    return {name: 1 / (1 + np.exp(-logit)) for name, logit in logits.items()}


def test_the_contract_fixture() -> None:
    """It is current (python -m trainer.tests.router_contract), and its file form gives scikit-learn's probabilities."""
    stored = json.loads(FILE.read_text())
    made = contract()
    assert [case["text"] for case in stored["cases"]] == CASES
    assert stored["router"]["vocabulary"] == made["router"]["vocabulary"]
    for kept, case in zip(stored["cases"], made["cases"], strict=True):
        assert kept["probabilities"] == pytest.approx(case["probabilities"], abs=1e-4)  # other BLAS, other last digits
        assert by_the_file(stored["router"], kept["text"]) == pytest.approx(kept["probabilities"], abs=1e-9)
        assert kept["option"] == case["option"]
    assert len({case["option"] for case in stored["cases"]}) > 1


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
