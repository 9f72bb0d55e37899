"""Runs given conversations in ToolSandbox itself: its roles, its loop, its evaluation, the real clock.

Invariant: only the models are scripted. `python toolsandbox_official.py FOLDER < jobs.json > results.json`; a job is
{scenario, agent: [message], user: [text]}, and a user with no more to say ends the conversation.
"""

import json
import logging
import random
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
random.seed(42)

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function  # noqa: E402
from tool_sandbox.common.execution_context import RoleType  # noqa: E402
from tool_sandbox.common.tool_discovery import ToolBackend  # noqa: E402
from tool_sandbox.roles.execution_environment import ExecutionEnvironment  # noqa: E402
from tool_sandbox.roles.openai_api_agent import OpenAIAPIAgent  # noqa: E402
from tool_sandbox.roles.openai_api_user import OpenAIAPIUser  # noqa: E402
from tool_sandbox.scenarios import named_scenarios  # noqa: E402
from toolsandbox_script import after, filled, results_in  # noqa: E402

END = {"content": "", "toolCalls": [{"name": "end_conversation", "arguments": {}}]}


def completion(message, turn):
    calls = [
        ChatCompletionMessageToolCall(
            id=f"call_{turn}_{n}",
            function=Function(name=call["name"], arguments=json.dumps(call["arguments"])),
            type="function",
        )
        for n, call in enumerate(message.get("toolCalls", []))
    ]
    return SimpleNamespace(
        choices=[SimpleNamespace(message=SimpleNamespace(content=message["content"], tool_calls=calls or None))]
    )


class ScriptedAgent(OpenAIAPIAgent):
    def __init__(self, messages):
        self.messages, self.prompts = iter(messages), []

    def model_inference(self, openai_messages, openai_tools):
        self.prompts.append({"messages": openai_messages, "tools": [tool["function"] for tool in openai_tools]})
        return completion(filled(after(self.messages), results_in(openai_messages)), len(self.prompts))


class ScriptedUser(OpenAIAPIUser):
    def __init__(self, texts):
        self.texts, self.prompts = iter(texts), []

    def model_inference(self, openai_messages, openai_tools):
        self.prompts.append(openai_messages)
        text = next(self.texts, None)
        return completion(END if text is None else {"content": text}, len(self.prompts))


def play(scenario, job):
    agent, user = ScriptedAgent(job["agent"]), ScriptedUser(job["user"])
    roles = {
        RoleType.AGENT: agent,
        RoleType.USER: user,
        RoleType.EXECUTION_ENVIRONMENT: ExecutionEnvironment(),
    }
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = scenario.play_and_evaluate(roles, Path(folder), job["scenario"]).evaluation_result
            scores = {
                "similarity": result.similarity,
                "milestone_similarity": result.milestone_similarity,
                "minefield_similarity": result.minefield_similarity,
                "turn_count": result.turn_count,
            }
        # As its runner does.
        except Exception:
            scores = {
                "similarity": 0,
                "milestone_similarity": 0,
                "minefield_similarity": 0,
                "turn_count": scenario.max_messages,
            }
    return {"scores": scores, "agent": agent.prompts, "user": user.prompts}


if __name__ == "__main__":
    logging.disable()
    answers, sys.stdout = sys.stdout, sys.stderr
    scenarios = named_scenarios(preferred_tool_backend=ToolBackend.DEFAULT)
    json.dump([play(scenarios[job["scenario"]], job) for job in json.load(sys.stdin)], answers)
