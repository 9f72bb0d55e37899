"""The reward, by tau2's own evaluator. Invariant: no model is called here; the caller supplies the judge's answers."""

import contextlib
from collections.abc import Iterator
from typing import Any

from tau2.data_model.message import AssistantMessage, Message
from tau2.data_model.simulation import RewardInfo, SimulationRun, TerminationReason
from tau2.evaluator import evaluator_nl_assertions
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation

from .episode import Episode
from .messages import to_protocol

# tau2 26.3 has no name for a conversation that outgrows the model's context; all reasons but the two stops score 0.
REASONS = {
    "user_stop": TerminationReason.USER_STOP,
    "agent_stop": TerminationReason.AGENT_STOP,
    "max_steps": TerminationReason.MAX_STEPS,
    "too_many_errors": TerminationReason.TOO_MANY_ERRORS,
    "agent_error": TerminationReason.AGENT_ERROR,
    "context_length": getattr(TerminationReason, "CONTEXT_WINDOW_EXCEEDED", TerminationReason.AGENT_ERROR),
}


class Asked(Exception):
    def __init__(self, question: list[Message]):
        super().__init__("the judge's answer is missing")
        self.question = question


def evaluate(episode: Episode, reason: str, judgements: list[str]) -> dict[str, Any]:
    """Answers `evaluate` with the reward, or with the judge's question if `judgements` lacks its answer."""
    simulation = SimulationRun(
        id=episode.task.id,
        task_id=episode.task.id,
        start_time="",
        end_time="",
        duration=0,
        termination_reason=REASONS[reason],
        messages=episode.trajectory,
    )
    try:
        with judged(judgements):
            info = evaluate_simulation(
                domain=episode.domain.name,
                task=episode.task,
                simulation=simulation,
                evaluation_type=EvaluationType.ALL,
                solo_mode=False,
            )
    except Asked as asked:
        return {"judge": [[to_protocol(message) for message in asked.question]]}
    if judgements:
        check_judgement(episode, info)
    breakdown = {basis.value: value for basis, value in (info.reward_breakdown or {}).items()}
    return {"reward": info.reward, "breakdown": breakdown, "reference": reference(episode)}


@contextlib.contextmanager
def judged(judgements: list[str]) -> Iterator[None]:
    """Replaces the evaluator's calls of a model by these answers, one a call, inside the block."""
    answers, call_model = iter(judgements), evaluator_nl_assertions.generate

    def generate(messages: list[Message], **_: Any) -> AssistantMessage:
        answer = next(answers, None)
        if answer is None:
            raise Asked(messages)
        return AssistantMessage(role="assistant", content=answer)

    evaluator_nl_assertions.generate = generate
    try:
        yield
    finally:
        evaluator_nl_assertions.generate = call_model


def check_judgement(episode: Episode, info: RewardInfo) -> None:
    """Raises ValueError for a judgement that leaves assertions out. The evaluator would count it as a pass."""
    wanted, got = len(episode.task.evaluation_criteria.nl_assertions), len(info.nl_assertions or [])
    if wanted != got:
        raise ValueError(f"the judge answered {got} of {wanted} assertions")


def reference(episode: Episode) -> dict[str, Any]:
    """Returns the writes that the agent must make, and the information that it must give to the user."""
    criteria = episode.task.evaluation_criteria
    actions = (criteria.actions if criteria is not None else None) or []
    return {
        "actions": [
            {"name": action.name, "arguments": action.arguments}
            for action in actions
            if action.requestor == "assistant" and action.name in episode.domain.write_tools
        ],
        "tell": (criteria.communicate_info if criteria is not None else None) or [],
    }
