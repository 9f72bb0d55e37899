"""Makes fixtures/router_contract.json, which holds Python and TypeScript to the same reading of a router file.

`python -m trainer.tests.router_contract` writes it anew; expected probabilities are scikit-learn's own
predict_proba."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from trainer.fit_router.fit import fit_router
from trainer.fit_router.linear import LinearRouter
from trainer.fit_router.outcomes import Outcomes, read_outcomes

FILE = Path(__file__).parent / "fixtures" / "router_contract.json"
CASES = [
    "please cancel my lamp",
    "PLEASE, return the chair!  Then cancel   it.",
    "refund? refund? refund?",
    "words that nobody knows",
    "",
    "crème brûlée, s'il vous plaît: cancel",
    "item i_42 (order #7) — return",
]


def synthetic_outcomes(tasks: int = 60, seed: int = 3) -> dict[str, Any]:
    """Tasks with one of two wishes; each adapter solves one of them, the base model few, the last option none."""
    generator = random.Random(seed)
    rows = []
    for index in range(tasks):
        wish = generator.choice(["cancel", "return"])
        text = f"{generator.choice(['please', 'hello,'])} {wish} my {generator.choice(['lamp', 'chair', 'desk'])} !"
        rates = {"base": 0.3, "cancels": 0.9 if wish == "cancel" else 0.2, "returns": 0.9 if wish == "return" else 0.2}
        outcomes = {name: [int(generator.random() < rate) for _ in range(2)] for name, rate in rates.items()}
        rows.append({"id": f"s{index}", "text": text, "outcomes": {**outcomes, "useless": [0, 0]}})
    return {"options": ["base", "cancels", "returns", "useless"], "tasks": rows}


def outcomes_of(matrix: dict[str, Any]) -> Outcomes:
    """What is read from a file that holds the matrix."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        file.write_text(json.dumps(matrix))
        return read_outcomes(file)


def contract() -> dict[str, Any]:
    """A fitted router and, for each case, the probabilities that scikit-learn's classifiers give."""
    outcomes = outcomes_of(synthetic_outcomes())
    router = fit_router(outcomes, folds=5, seed=1)
    rates = np.array([[np.mean(trials) for trials in task] for task in outcomes.successes])
    linear = LinearRouter(outcomes.texts, rates, seed=1)
    features = linear.vectorizer.transform(CASES)
    cases: list[dict[str, Any]] = [{"text": text, "probabilities": {}} for text in CASES]
    for name, (coef, intercept) in zip(outcomes.options, linear.models, strict=True):
        classifier = LogisticRegression()
        classifier.coef_, classifier.intercept_ = coef[None], np.array([intercept])
        classifier.classes_ = np.array([0, 1])
        for case, probability in zip(cases, classifier.predict_proba(features)[:, 1], strict=True):
            case["probabilities"][name] = float(probability)
    for case, choice in zip(cases, linear.choices(CASES), strict=True):
        case["option"] = outcomes.options[choice]
    return {"router": router, "cases": cases}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(contract(), indent=1, ensure_ascii=False) + "\n")
