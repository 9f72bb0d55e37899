"""One attempt at a scenario.

Invariant: turns and the end of the conversation are those of ToolSandbox's own loop; the messages of models are input.
"""

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function
from tool_sandbox.common.evaluation import EvaluationResult
from tool_sandbox.common.execution_context import DatabaseNamespace, RoleType, get_current_context
from tool_sandbox.common.message_conversion import Message, openai_tool_call_to_python_code, to_openai_messages
from tool_sandbox.common.scenario import Scenario
from tool_sandbox.roles.base_role import BaseRole
from tool_sandbox.roles.execution_environment import ExecutionEnvironment
from tool_sandbox.roles.openai_api_user import OpenAIAPIUser

from ..rpc import BadParams
from . import matching  # noqa: F401  (takes the place of a search)
from .library import Clock
from .tools import AgentRole, UserRole, offered
from .world import World

Answer = dict[str, Any]

# Its runner scores 0 where its agent raises: calls of tools that there are not, conversations too long for the model.
ERRORS = ("agent_error", "context_length", "too_many_errors")


# Memory addresses in the messages of some exceptions, which differ in every run.
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")


class UserError(Exception):
    """The simulated user's message is invalid. The agent is not the cause."""


class Episode:
    def __init__(self, scenario: Scenario, clock: Clock, seed: str) -> None:
        self._scenario = scenario
        self._world = World(copy.deepcopy(scenario.starting_context), clock, seed)
        self._console = ExecutionEnvironment()
        with self._world.entered():
            self._prepare_console()
            self._limit = get_current_context().max_sandbox_message_index + scenario.max_messages
        # The number of messages that were sent to the user's model.
        self._told = 0

    def start(self) -> Answer:
        with self._world.entered():
            messages, _ = to_openai_messages(AgentRole.filter_messages(AgentRole.get_messages()))
            return {
                "messages": messages,
                "tools": offered(AgentRole),
                "userTools": offered(UserRole),
                "maxSteps": self._scenario.max_messages,
            }

    def step(self, message: Answer) -> Answer:
        role, turn = (AgentRole, self._agent) if message["role"] == "assistant" else (UserRole, self._user)
        with self._world.entered():
            if last_message()["recipient"] != role.role_type:
                raise BadParams(f"params.message: role is {message['role']}, and it is the other one's turn")
            return turn(message)

    def evaluate(self, reason: str) -> Answer:
        limit = self._scenario.max_messages
        with self._world.entered():
            result = (
                EvaluationResult(turn_count=limit)
                if reason in ERRORS
                else self._scenario.evaluation.evaluate(get_current_context(), max_turn_count=limit)
            )
        breakdown = {
            "similarity": float(result.similarity),
            "perfect": int(result.similarity == 1),
            "milestone_similarity": float(result.milestone_similarity),
            "minefield_similarity": float(result.minefield_similarity),
            "turn_count": result.turn_count,
        }
        return {"reward": breakdown["similarity"], "breakdown": breakdown}

    def _prepare_console(self) -> None:
        """Scenarios begin with code for the console: the tools' imports."""
        for index, message in enumerate(BaseRole.get_messages()):
            if (message.sender, message.recipient) == (RoleType.SYSTEM, RoleType.EXECUTION_ENVIRONMENT):
                self._console.respond(ending_index=index)

    def _agent(self, message: Answer) -> Answer:
        """Handles the agent's message. Text beside calls is ignored."""
        calls = message.get("toolCalls")
        if not calls:
            say(AgentRole, RoleType.USER, message["content"])
            return self._end() or self._ask_user()
        try:
            coded = code_calls(AgentRole, calls)
        except KeyError:
            return {"messages": [], "done": True, "stopReason": "agent_error"}
        results = self._execute(calls, coded)
        return self._end(results) or {"messages": results, "done": False}

    def _user(self, message: Answer) -> Answer:
        calls = message.get("toolCalls")
        if not calls:
            say(UserRole, RoleType.AGENT, message["content"])
            self._told += 1
            return self._end() or {"messages": [], "done": False}
        try:
            coded = code_calls(UserRole, calls)
        except KeyError as error:
            raise UserError(f"the simulated user called a tool that it has not: {error}") from error
        results = [{**result, "requestor": "user"} for result in self._execute(calls, coded)]
        return self._end(results) or {"messages": results, "done": False, "user": results}

    def _ask_user(self) -> Answer:
        """Few-shot conversations, then this one; roles are turned round, since an assistant plays the user."""
        heard = OpenAIAPIUser.to_openai_messages(UserRole.filter_messages(UserRole.get_messages()))
        news, self._told = heard[self._told :], len(heard)
        return {"messages": [], "done": False, "user": news}

    def _execute(self, calls: list[Answer], coded: list[Message]) -> list[Answer]:
        """The calls' results, in the calls' order; none where the calls themselves were one message too many."""
        AgentRole.add_messages(coded)
        if self._end():
            return []
        self._console.respond()
        # Calls made at once come back in another order where that one has failed.
        content = {result.openai_tool_call_id: result.content for result in BaseRole.get_messages()[-len(calls) :]}
        return [
            {
                "role": "tool",
                "toolCallId": call["id"],
                "content": ADDRESS.sub(" at 0x0>", content[made.openai_tool_call_id]),
            }
            for call, made in zip(calls, coded, strict=True)
        ]

    def _end(self, results: Sequence[Answer] = ()) -> Answer | None:
        """The answer that ends the conversation, if it is over."""
        if not last_message()["conversation_active"]:
            return {"messages": results, "done": True, "stopReason": "user_stop"}
        if get_current_context().max_sandbox_message_index >= self._limit:
            return {"messages": results, "done": True, "stopReason": "max_steps"}
        return None


def last_message() -> dict[str, Any]:
    return get_current_context().get_database(DatabaseNamespace.SANDBOX).to_dicts()[-1]


def say(role: type[BaseRole], recipient: RoleType, content: str) -> None:
    role.add_messages([Message(sender=role.role_type, recipient=recipient, content=content)])


def code_calls(role: type[BaseRole], calls: list[Answer]) -> list[Message]:
    """Returns the calls as code messages for the console. Ids become names of variables, so new ones are made. Raises
    KeyError for an unknown tool."""
    context, tools = get_current_context(), role.get_available_tools()
    coded = []
    for number, call in enumerate(calls, start=context.max_sandbox_message_index + 1):
        function = Function(name=call["name"], arguments=json.dumps(call["arguments"]))
        made = ChatCompletionMessageToolCall(id=f"call_{number}", function=function, type="function")
        coded.append(
            Message(
                sender=role.role_type,
                recipient=RoleType.EXECUTION_ENVIRONMENT,
                content=openai_tool_call_to_python_code(made, set(tools), tools[call["name"]].__name__),
                openai_tool_call_id=made.id,
                openai_function_name=call["name"],
            )
        )
    return coded
