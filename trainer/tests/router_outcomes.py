"""Helpers of the router's tests: outcome matrices, fitted."""

from __future__ import annotations

from typing import Any

from trainer.fit_router.fit import fit_router
from trainer.tests.router_contract import outcomes_of

NAMES = ["constant", "ridge"]


def fit(raw: dict[str, Any], folds: int = 5) -> dict[str, Any]:
    return fit_router(outcomes_of(raw), folds=folds, seed=1)


def matrix(columns: dict[str, list[float]], texts: list[str]) -> dict[str, Any]:
    tasks = [
        {"id": f"s{i}", "text": text, "outcomes": {name: [column[i]] for name, column in columns.items()}}
        for i, text in enumerate(texts)
    ]
    return {"options": list(columns), "tasks": tasks}


def scores(router: dict[str, Any]) -> dict[str, float]:
    return {one["form"]: one["mean"] for one in router["crossValidation"]["forms"]}
