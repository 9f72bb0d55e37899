"""Success by skill, and the gates that a base model must pass.

Invariant: figures come from rollouts in the real environment, and each stands with its number of rollouts; what is
asked of a skill follows from how strongly its lack is planted."""

import math

from examples.shop.base_model.play import Rollout

MIN_SUCCESS = 0.2
# Of a skill that is not planted, on its own tasks.
UNPLANTED = 0.95
# A finding of chance alone that a gate makes of a base that is as its demonstrations are.
CHANCE = 0.01
# The quantile of the normal distribution that CHANCE leaves above it.
QUANTILE = 2.326
# Above the success that the demonstrations leave: sampling at temperature 1 finds some that they do not show.
MARGIN = 0.05


def share(rollouts: list[Rollout]) -> dict:
    """Mean reward with n."""
    return {"success": round(sum(r.reward for r in rollouts) / max(1, len(rollouts)), 4), "n": len(rollouts)}


def measure(rollouts: list[Rollout]) -> dict:
    """Success in all, by reward component, and by skill: on tasks that carry only it, and on all that carry it."""
    skills = sorted({s for r in rollouts for s in r.task["skills"]})
    parts = ("db", "info")
    component = {p: sum((r.evaluation or {"breakdown": {}})["breakdown"].get(p, 0) for r in rollouts) for p in parts}
    return {
        "all": share(rollouts),
        "components": {p: round(total / max(1, len(rollouts)), 4) for p, total in component.items()},
        "alone": {s: share([r for r in rollouts if r.task["skills"] == [s]]) for s in skills},
        "carried": {s: share([r for r in rollouts if s in r.task["skills"]]) for s in skills},
    }


def expected_success(tasks: list[dict], lacks: dict[str, float]) -> float:
    """The share of demonstrations on these tasks that make no mistake: what a base solves that is as they are."""
    without = [math.prod(1 - lacks.get(skill, 0) for skill in task["skills"]) for task in tasks]
    return sum(without) / len(without)


def most_success(tasks: list[dict], lacks: dict[str, float]) -> float:
    """The gate's upper bound: a base that solves more does not lack what was planted."""
    return round(min(1.0, expected_success(tasks, lacks) + MARGIN), 4)


def most_planted(strength: float, n: int) -> float:
    """The most that n rollouts may solve of a skill planted at `strength`: what is left of it, and the spread of n."""
    return 1 - strength + MARGIN + QUANTILE * math.sqrt(strength * (1 - strength) / n)


def _missed_skill(skill: str, figure: dict, strength: float) -> str | None:
    success, n = figure["success"], figure["n"]
    # Planted strongly, a skill is so rare that n rollouts may well show none of it, however long the training.
    if success == 0 and strength**n < CHANCE:
        return f"no success in {skill}"
    if strength == 0 and success < UNPLANTED:
        return f"success in {skill}, which is not planted, is {success} < {UNPLANTED}"
    if strength > 0 and success > (most := most_planted(strength, n)):
        return f"success in {skill}, planted at {strength}, is {success} > {most:.2f}"
    return None


def needs_training(measured: dict, lacks: dict[str, float]) -> list[str]:
    """One line for each gate that more steps can meet: a reward component without success; a skill that is damaged
    though it is not planted, without success though some is left of it, or not lacking as strongly as planted."""
    missed = [f"reward component {p} is never earned" for p, value in measured["components"].items() if value == 0]
    skills = measured["alone"].items()
    found = [_missed_skill(skill, figure, lacks.get(skill, 0.0)) for skill, figure in skills]
    return [f"{line}: train longer" for line in [*missed, *filter(None, found)]]


def gate_failures(measured: dict, lacks: dict[str, float], max_success: float) -> list[str]:
    """One line for each gate that the sampled figures on `train` miss; none if the base may be used."""
    total = measured["all"]["success"]
    missed = needs_training(measured, lacks)
    if not MIN_SUCCESS <= total <= max_success:
        band = f"[{MIN_SUCCESS}, {max_success}]"
        missed.append(f"success on train is {total}, outside {band}: change --lack")
    return missed


def summary(measured: dict) -> str:
    """One line: success in all and by single skill."""
    alone = " ".join(f"{s} {f['success']:.2f}" for s, f in measured["alone"].items())
    return f"success {measured['all']['success']:.2f} ({alone})"
