"""The tau2-bench bridge where test/contract/tau2.test.ts does not look: prompts, turns, judge."""

import json

import pytest
from bridges.tau2.library import load

VERSION = load(None)
STOP = {"role": "user", "content": "thanks ###STOP###"}


def methods(*domains: str):
    from bridges.tau2.server import methods_of

    return methods_of(list(domains), VERSION)


def test_no_model_can_be_called():
    import litellm
    from tau2.utils import llm_utils

    assert not hasattr(litellm, "__file__")
    assert isinstance(llm_utils.completion(model="any", messages=[]), Exception)


def test_prompts_are_those_of_the_benchmark():
    from tau2.agent.llm_agent import LLMAgent
    from tau2.registry import registry
    from tau2.user.user_simulator import UserSimulator

    bridge = methods("telecom")
    task = bridge["tasks"]({"split": "train"})["tasks"][0]["id"]
    begun = bridge["reset"]({"task": {"id": task, "seed": 1}})

    environment = registry.get_env_constructor("telecom")()
    [own] = [each for each in registry.get_tasks_loader("telecom")() if f"telecom/{each.id}" == task]
    agent = LLMAgent(environment.get_tools(), environment.get_policy())
    user = UserSimulator(tools=environment.get_user_tools(), instructions=str(own.user_scenario))
    assert begun["messages"][0] == {"role": "system", "content": agent.system_prompt}
    assert begun["user"][0] == {"role": "system", "content": user.system_prompt}
    assert begun["user"][1] == {"role": "user", "content": begun["messages"][1]["content"]}
    assert [tool["name"] for tool in begun["userTools"]] == [tool.name for tool in environment.get_user_tools()]
    assert begun["tools"][0]["parameters"] == environment.get_tools()[0].openai_schema["function"]["parameters"]


def test_a_task_with_a_history_continues_from_it():
    begun = methods("mock")["reset"]({"task": {"id": "mock/update_task_with_message_history", "seed": 1}})
    assert [message["role"] for message in begun["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    # The agent's calls are not for the user's ears.
    assert [message["role"] for message in begun["user"]] == ["system", "assistant", "user"]


def test_the_judge_is_asked_from_outside():
    from bridges.tau2.evaluation import Asked, judged
    from tau2.evaluator.evaluator_nl_assertions import NLAssertionsEvaluator
    from tau2.registry import registry

    [task] = [each for each in registry.get_tasks_loader("mock")() if each.id == "create_task_1_nl_eval"]
    with judged([]), pytest.raises(Asked) as asked:
        NLAssertionsEvaluator.calculate_reward(task, [])
    assert [message.role for message in asked.value.question] == ["system", "user"]
    for met in (True, False):
        results = [
            {"expectedOutcome": outcome, "reasoning": "", "metExpectation": met}
            for outcome in task.evaluation_criteria.nl_assertions
        ]
        with judged([json.dumps({"results": results})]):
            assert NLAssertionsEvaluator.calculate_reward(task, []).reward == float(met)
