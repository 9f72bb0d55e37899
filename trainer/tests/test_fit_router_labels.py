"""The router kind `label_tokens`: what the base model says of a task, calibrated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainer.fit_router.outcomes import BadOutcomes
from trainer.tests.router_contract import outcomes_of
from trainer.tests.router_outcomes import fit, scores


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
    labels = {"names": names, "neighbours": [4, 16], "logprobs": logprobs}
    return {"options": options, "tasks": rows, "labels": labels}


def test_labels_are_calibrated_and_the_nucleus_is_a_sum() -> None:
    router = fit(labelled(80))
    validation = router["crossValidation"]
    assert list(scores(router)) == ["constant", "labels"]
    assert validation["form"] == router["parameters"]["form"] == "labels"
    assert validation["routed"]["mean"] > validation["bestSingle"]["mean"] - 1e-9
    assert router["parameters"]["neighbours"] == 16
    prior = dict(zip(router["parameters"]["names"], router["parameters"]["prior"], strict=True))
    assert prior["a"] < prior["b"]


def test_a_text_without_labels_is_a_failure_and_no_choice() -> None:
    raw = labelled(80, failed=8)
    for one in raw["labels"]["logprobs"]:
        one[0] = one[1]
    whole, broken = (scores(fit(one))["labels"] for one in (labelled(80), raw))
    assert broken < whole - 0.04


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"names": ["a", "base", "b"]}, "labels.names 'a': name the base first"),
        ({"names": ["base", "a", "c"]}, "labels.names 'c'"),
        ({"neighbours": [4]}, "labels.logprobs: give one list a task"),
    ],
)
def test_bad_labels(changes: dict[str, Any], said: str) -> None:
    raw = labelled(12)
    with pytest.raises(BadOutcomes, match=said):
        outcomes_of({**raw, "labels": {**raw["labels"], **changes}})
