"""Makes fixtures/router_contract.json, which holds Python and TypeScript to the same reading of a router file.

`python -m trainer.tests.router_contract` replaces it."""

import json
import random
from pathlib import Path
from typing import Any

from trainer.fit_router.fit import Question, fit_router
from trainer.fit_router.ridge import RidgeModel, choices

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


def outcomes_of(raw: dict[str, Any]) -> Question:
    """As read from a file."""
    return Question.model_validate_json(json.dumps(raw))


def contract() -> dict[str, Any]:
    """The router fitted with a ridge, and for each case the predictions and the option."""
    outcomes = outcomes_of(synthetic_outcomes())
    fitted = RidgeModel.fit(outcomes.texts, outcomes.rates, seed=1)
    predicted = fitted.predictions(CASES)
    cases = [
        {
            "text": text,
            "predictions": dict(zip(outcomes.options, row.tolist(), strict=True)),
            "option": outcomes.options[choice],
        }
        for text, row, choice in zip(CASES, predicted, choices(predicted), strict=True)
    ]
    router = {**fit_router(outcomes), "parameters": fitted.to_json(outcomes.options)}
    return {"options": outcomes.options, "router": router, "cases": cases}


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(contract(), indent=1, ensure_ascii=False) + "\n")
