"""`python -m trainer fit-router`: the same bytes again, its options, and what it refuses."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainer.command import REFUSED
from trainer.fit_router import main
from trainer.fit_router.outcomes import BadOutcomes
from trainer.tests.router_contract import outcomes_of, synthetic_outcomes
from trainer.tests.router_outcomes import fit, matrix

ROOT = Path(__file__).resolve().parents[2]


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
        # 4 folds of two forms, and the one that was kept.
        assert told == [{"done": n + 1, "total": 9} for n in range(9)]
    assert written[0] == written[1]


def test_folds_and_seed_are_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.fit_router.fit.fit_router", lambda _, progress, **given: given)
    source, out = tmp_path / "outcomes.json", tmp_path / "router.json"
    source.write_text(json.dumps(synthetic_outcomes()))
    assert main(["--in", str(source), "--out", str(out), "--folds", "4", "--seed", "2"]) == 0
    assert json.loads(out.read_text()) == {"folds": 4, "seed": 2}


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
