"""Success by skill, and the gates that a base model must pass.

Invariant: figures come from rollouts in the real environment, and each stands with its number of rollouts.
"""

from trainer.base_model.play import Rollout

MIN_SUCCESS = 0.2
UNPLANTED = 0.95


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


def needs_training(measured: dict, lacks: dict[str, float]) -> list[str]:
    """One line for each gate that more steps can meet: a reward component or skill without success, a skill that is not
    planted below UNPLANTED."""
    missed = [f"reward component {p} is never earned" for p, value in measured["components"].items() if value == 0]
    for skill, figure in measured["alone"].items():
        if figure["success"] == 0:
            missed.append(f"no success in {skill}")
        elif skill not in lacks and figure["success"] < UNPLANTED:
            missed.append(f"success in {skill}, which is not planted, is {figure['success']} < {UNPLANTED}")
    return [f"{line}: train longer" for line in missed]


def gate_failures(measured: dict, lacks: dict[str, float], max_success: float) -> list[str]:
    """One line for each gate that the sampled figures on `train` miss; none if the base may be used."""
    total = measured["all"]["success"]
    missed = needs_training(measured, lacks)
    if not MIN_SUCCESS <= total <= max_success:
        band = f"[{MIN_SUCCESS}, {max_success}]"
        missed.append(f"success on train is {total}, outside {band}: change --lack or --max-success")
    return missed


def summary(measured: dict) -> str:
    """One line: success in all and by single skill."""
    alone = " ".join(f"{s} {f['success']:.2f}" for s, f in measured["alone"].items())
    return f"success {measured['all']['success']:.2f} ({alone})"
