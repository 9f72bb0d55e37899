"""Scores recorded rollouts with tau2-bench itself, without the bridge: JSON lines on stdin, the rewards on stdout.

Invariant: its own registry, environments and evaluator; the bridge shares no code but the one that finds the package,
or the checkout that TAU2_CHECKOUT names. The first line holds the judge's answers by question: a question that the
bridge did not ask is an error.
"""

import json
import os
import sys

from bridges.rpc import protocol_streams
from bridges.tau2.library import load


def main() -> None:
    with protocol_streams() as (rollouts, answers):
        load(os.environ.get("TAU2_CHECKOUT"))
        judge(json.loads(next(rollouts)))
        json.dump([verdict(json.loads(line)) for line in rollouts], answers)


def judge(judgements: dict[str, str]) -> None:
    from tau2.data_model.message import AssistantMessage
    from tau2.evaluator import evaluator_nl_assertions

    def generate(messages, **_):
        return AssistantMessage(role="assistant", content=judgements[messages[-1].content])

    evaluator_nl_assertions.generate = generate


def verdict(rollout: dict) -> dict:
    from tau2.data_model.simulation import SimulationRun
    from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation

    domain = rollout["task"].split("/")[0]
    reason = {"context_length": "agent_error"}.get(rollout["stopReason"], rollout["stopReason"])
    simulation = SimulationRun(
        id="recorded",
        task_id=rollout["task"],
        start_time="0",
        end_time="1",
        duration=1,
        termination_reason=reason,
        messages=[recorded(message) for message in rollout["messages"] if message["role"] != "system"],
    )
    info = evaluate_simulation(simulation, task_of(rollout["task"]), EvaluationType.ALL, solo_mode=False, domain=domain)
    return {"reward": info.reward, "breakdown": {k.value: v for k, v in (info.reward_breakdown or {}).items()}}


TASKS: dict[str, dict] = {}


def task_of(name: str):
    from tau2.registry import registry

    domain, task = name.split("/", 1)
    if domain not in TASKS:
        TASKS[domain] = {each.id: each for each in registry.get_tasks_loader(domain)("base")}
    return TASKS[domain][task]


def recorded(message: dict):
    from tau2.data_model.message import AssistantMessage, ToolMessage, UserMessage

    role, content = message["role"], message["content"]
    if role == "tool":
        requestor = message.get("requestor", "assistant")
        return ToolMessage(role=role, id=message["toolCallId"], content=content, requestor=requestor)
    calls = [{**call, "requestor": role} for call in message.get("toolCalls", [])] or None
    # A model's API sends None for an empty text, and a judge reads the difference.
    content = content or None
    return {"assistant": AssistantMessage, "user": UserMessage}[role](role=role, content=content, tool_calls=calls)


if __name__ == "__main__":
    sys.exit(main())
