"""The outcome matrix: options (base and adapters) x tasks. Invariant: every task has outcomes of every option."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASE = "base"


class BadOutcomes(ValueError):
    """The outcome matrix cannot be fitted on; the message names the field, the value and the fix."""


@dataclass(frozen=True)
class Outcomes:
    """`successes[t][o]`: the outcomes, in [0, 1], of each trial of option `o` at task `t`. `options[0]` is the base
    model."""

    options: list[str]
    texts: list[str]
    successes: list[list[list[float]]]


def read_outcomes(path: Path) -> Outcomes:
    """Reads {"options": [...], "tasks": [{"id", "text", "outcomes": {option: [trials]}}]}. Raises BadOutcomes."""
    try:
        raw = json.loads(path.read_text())
    except OSError as error:
        raise BadOutcomes(f"--in {path}: {error.strerror}; name the outcomes file") from error
    except ValueError as error:
        raise BadOutcomes(f"--in {path}: not JSON ({error}); write it whole") from error
    return parse_outcomes(raw)


def parse_outcomes(raw: Any) -> Outcomes:
    """Checks a decoded outcome matrix and puts the base model first, where it wins ties. Raises BadOutcomes."""
    if not isinstance(raw, dict):
        raise BadOutcomes(f"outcomes {str(raw)[:40]}: must be a JSON object with options and tasks")
    options = raw.get("options")
    if (
        not isinstance(options, list)
        or not all(isinstance(o, str) for o in options)
        or len(set(options)) < len(options)
    ):
        raise BadOutcomes(f"options {options!r}: must be a list of different names; name the base and the adapters")
    if BASE not in options:
        raise BadOutcomes(f"options {options!r}: '{BASE}' is missing; the base model is always an option")
    options = [BASE, *(option for option in options if option != BASE)]
    tasks = raw.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise BadOutcomes(f"tasks {str(tasks)[:40]}: must be a list of at least one task; evaluate the options first")
    texts, successes = [], []
    for index, task in enumerate(tasks):
        where = f"tasks[{index}]"
        if not isinstance(task, dict) or not isinstance(task.get("text"), str):
            raise BadOutcomes(f"{where}.text: must be the first user message; add it")
        given = task.get("outcomes")
        if not isinstance(given, dict):
            raise BadOutcomes(f"{where}.outcomes {str(given)[:40]}: must be an object of lists, one an option; add it")
        texts.append(task["text"])
        successes.append([_trials(f"{where}.outcomes.{option}", given.get(option)) for option in options])
    return Outcomes(options, texts, successes)


def _trials(where: str, raw: Any) -> list[float]:
    if not isinstance(raw, list) or not raw or not all(type(x) in (int, float) and 0 <= x <= 1 for x in raw):
        raise BadOutcomes(f"{where} {str(raw)[:40]}: must be a list of at least one number in [0, 1]; one a trial")
    return [float(x) for x in raw]
