"""The forms of routing, each by itself, and the contract with TypeScript."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge

from trainer.fit_router.fit import Constant, folds_of
from trainer.fit_router.ridge import Ridge, prepared
from trainer.tests.router_contract import CASES, FILE, contract


def test_every_form_predicts_rates_that_are_there_for_texts_that_say_nothing() -> None:
    texts = [f"word w{i}" for i in range(20)]
    rates = np.array([[float(i % 2), 1.0] for i in range(20)])
    for form in (Constant(), Ridge()):
        predicted = form.fit(texts, rates, seed=1).predictions(["", "unknown"])
        assert np.isfinite(predicted).all()
        assert predicted == pytest.approx(np.array([[0.5, 1.0]] * 2), abs=0.06), form.name


def test_a_ridge_is_a_ridge() -> None:
    texts = ["red lamp", "blue lamp", "red chair", "blue chair", "green"]
    rates = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    words, solve = prepared(texts, rates)
    coef, intercepts = solve(3.0)
    by_hand = SklearnRidge(alpha=3.0).fit(words.features.toarray(), rates)
    assert pytest.approx(by_hand.coef_) == coef.T
    assert intercepts == pytest.approx(by_hand.intercept_)


def test_identical_texts_are_never_on_both_sides_of_a_fold() -> None:
    texts = [f"text {i % 7}" for i in range(40)]
    splits = folds_of(texts, 5, seed=1)
    assert len(splits) == 5
    assert sorted(i for _, test in splits for i in test) == list(range(40))
    for train, test in splits:
        assert not {texts[i] for i in train} & {texts[i] for i in test}


def by_the_file(model: dict[str, Any], text: str) -> dict[str, float]:
    """What src/routing/learned.ts does, from the file alone."""
    words = re.findall(model["words"]["tokenPattern"], text.lower())
    terms = {" ".join(words[i : i + n]) for n in (1, 2) for i in range(len(words) - n + 1)}
    vocabulary = model["words"]["vocabulary"]
    present = [vocabulary[term] for term in terms if term in vocabulary]
    return {o["name"]: o["intercept"] + sum(o["coef"][i] for i in present) for o in model["options"]}


def test_the_contract_fixture() -> None:
    """It is current (python -m trainer.tests.router_contract), and its file gives what the ridge predicts."""
    stored, made = json.loads(FILE.read_text()), contract()
    model = stored["router"]["parameters"]
    assert [case["text"] for case in stored["cases"]] == CASES
    assert model["words"]["vocabulary"] == made["router"]["parameters"]["words"]["vocabulary"]
    for kept, case in zip(stored["cases"], made["cases"], strict=True):
        # Another BLAS, other last digits.
        assert kept["predictions"] == pytest.approx(case["predictions"], abs=1e-4)
        assert by_the_file(model, kept["text"]) == pytest.approx(kept["predictions"], abs=1e-9)
        assert kept["option"] == case["option"]
    assert len({case["option"] for case in stored["cases"]}) > 1
