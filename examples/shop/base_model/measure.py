"""Success by skill, and the gates that a base model must pass.

Invariant: figures come from rollouts in the real environment, and each stands with its number of rollouts; what is
asked of a skill follows from how strongly its lack is planted."""

import math

from examples.shop.base_model.play import Rollout

# The least success in a skill that is not planted, on its own tasks.
UNPLANTED = 0.95
# The probability that a gate fails by chance for a base that matches its demonstrations.
CHANCE = 0.01
# The quantile of the normal distribution for CHANCE.
QUANTILE = 2.326
# Tolerance above the success that the demonstrations leave: sampling at temperature 1 finds additional solutions.
MARGIN = 0.05


def share(rollouts: list[Rollout]) -> dict:
    """Mean reward with n."""
    return {"success": round(sum(r.reward for r in rollouts) / max(1, len(rollouts)), 4), "n": len(rollouts)}


def measure(rollouts: list[Rollout]) -> dict:
    """Success in all, and by skill on tasks that carry only it."""
    skills = sorted({s for r in rollouts for s in r.task["skills"]})
    return {
        "all": share(rollouts),
        "alone": {s: share([r for r in rollouts if r.task["skills"] == [s]]) for s in skills},
    }


def most_planted(strength: float, n: int) -> float:
    """Returns the largest success of n rollouts in a skill planted at `strength`, with the sampling error."""
    return 1 - strength + MARGIN + QUANTILE * math.sqrt(strength * (1 - strength) / n)


def gate_failures(measured: dict, lacks: dict[str, float]) -> list[str]:
    """One line for each gate that more steps can meet: a skill that is damaged though it is not planted, without
    success though some is left of it, or not lacking as strongly as planted."""
    missed = []
    for skill, figure in measured["alone"].items():
        success, n, strength = figure["success"], figure["n"], lacks.get(skill, 0.0)
        # Planted strongly, a skill is so rare that n rollouts may well show none of it, however long the training.
        if success == 0 and strength**n < CHANCE:
            missed.append(f"no success in {skill}")
        elif strength == 0 and success < UNPLANTED:
            missed.append(f"success in {skill}, which is not planted, is {success} < {UNPLANTED}")
        elif strength > 0 and success > (most := most_planted(strength, n)):
            missed.append(f"success in {skill}, planted at {strength}, is {success} > {most:.2f}")
    return missed


def summary(measured: dict) -> str:
    """One line: success in all and by single skill."""
    alone = " ".join(f"{s} {f['success']:.2f}" for s, f in measured["alone"].items())
    return f"success {measured['all']['success']:.2f} ({alone})"
