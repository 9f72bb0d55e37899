"""One episode: tau2's own orchestrator, waiting wherever it would call a model.

Invariant: between two messages happens what Orchestrator.run does there; only the messages come from outside.
"""

from typing import Any

from tau2.agent.llm_agent import LLMAgent
from tau2.config import DEFAULT_MAX_ERRORS, DEFAULT_MAX_STEPS
from tau2.data_model.message import AssistantMessage, Message, MultiToolMessage, UserMessage
from tau2.data_model.simulation import TerminationReason
from tau2.data_model.tasks import Task
from tau2.orchestrator.orchestrator import Orchestrator, Role
from tau2.user.user_simulator import UserSimulator

from .domain import Domain, schema_of
from .messages import to_protocol, to_tau2

NO_MODEL = "none: its messages come from outside"


class Given:
    """Replaces a model: the next message is `given`."""

    given: AssistantMessage | UserMessage

    def generate_next_message(self, message, state):
        state.messages.extend(message.tool_messages if isinstance(message, MultiToolMessage) else [message])
        state.messages.append(self.given)
        return self.given, state


class Agent(Given, LLMAgent):
    pass


class User(Given, UserSimulator):
    pass


class Episode:
    def __init__(self, domain: Domain, task: Task):
        # A copy: the environment may keep, and change, what it is initialized with.
        self.task = task.model_copy(deep=True)
        self.domain = domain
        self.user_kit = user_tools_of(self.task, domain)
        self.agent = Agent(tools=[], domain_policy=domain.policy, llm=NO_MODEL)
        self.user = User(tools=self.user_kit, instructions=str(self.task.user_scenario), llm=NO_MODEL)
        self._orchestrator = Orchestrator(
            domain=domain.name,
            agent=self.agent,
            user=self.user,
            environment=domain.fresh(),
            task=self.task,
            max_steps=DEFAULT_MAX_STEPS,
            max_errors=DEFAULT_MAX_ERRORS,
        )
        self._orchestrator.initialize()
        self._user_has_heard = False
        self._told = 0
        self._run_tools()
        if self._orchestrator.done:
            raise ValueError(f"task {task.id} is over before the agent speaks")

    @property
    def trajectory(self) -> list[Message]:
        return self._orchestrator.trajectory

    def start(self) -> dict[str, Any]:
        """The answer to `reset`."""
        [system] = self._orchestrator.agent_state.system_messages
        news = self._news()
        start = {
            "messages": [to_protocol(system), *news["messages"]],
            "tools": self.domain.tools,
            "maxSteps": DEFAULT_MAX_STEPS,
        }
        if self.user_kit is not None:
            toolkit = self._orchestrator.environment.user_tools
            start["userTools"] = [schema_of(tool, toolkit) for tool in self.user_kit]
        return {**start, **({"user": news["user"]} if "user" in news else {})}

    def step(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answers `step` with a message of the agent or user. Raises ValueError for a message out of turn."""
        orchestrator, role = self._orchestrator, Role.AGENT if message["role"] == "assistant" else Role.USER
        if orchestrator.done or orchestrator.to_role != role:
            turn = "the episode is over" if orchestrator.done else f"it is the {orchestrator.to_role.value}'s turn"
            raise ValueError(f"step: a message of the {role.value}'s, but {turn}")
        given = to_tau2(message)
        try:
            given.validate()
        except ValueError:
            # tau2 ends the whole run here. An agent that says nothing has failed; a user that says nothing is broken.
            if role == Role.USER:
                raise
            self._end(TerminationReason.AGENT_ERROR)
            return self._news()
        (self.agent if role == Role.AGENT else self.user).given = given
        self._advance()
        self._told += 1  # the message itself
        self._run_tools()
        return self._news()

    def _advance(self) -> None:
        """One turn of the loop in Orchestrator.run, with its limits."""
        orchestrator = self._orchestrator
        orchestrator.step()
        if orchestrator.to_role == Role.ENV:
            return
        if orchestrator.step_count >= orchestrator.max_steps:
            self._end(TerminationReason.MAX_STEPS)
        if orchestrator.num_errors >= orchestrator.max_errors:
            self._end(TerminationReason.TOO_MANY_ERRORS)

    def _run_tools(self) -> None:
        while self._orchestrator.to_role == Role.ENV and not self._orchestrator.done:
            self._advance()

    def _end(self, reason: TerminationReason) -> None:
        self._orchestrator.done, self._orchestrator.termination_reason = True, reason

    def _news(self) -> dict[str, Any]:
        """Returns the messages since the last answer, and `user`, the user's new messages, if it is the user's turn."""
        orchestrator = self._orchestrator
        messages = [to_protocol(message) for message in self.trajectory[self._told :]]
        self._told = len(self.trajectory)
        if orchestrator.done:
            return {"messages": messages, "done": True, "stopReason": orchestrator.termination_reason.value}
        asked = {"user": self._for_user()} if orchestrator.to_role == Role.USER else {}
        return {"messages": messages, "done": False, **asked}

    def _for_user(self) -> list[dict[str, Any]]:
        """Returns the user's new messages with flipped roles; the first call adds its instructions and the history."""
        state, message = self._orchestrator.user_state, self._orchestrator.message
        new = message.tool_messages if isinstance(message, MultiToolMessage) else [message]
        system, before = ([], []) if self._user_has_heard else (state.system_messages, state.messages)
        self._user_has_heard = True
        flipped = state.model_copy(update={"messages": [*before, *new]}).flip_roles()
        return [to_protocol(message) for message in [*system, *flipped]]


def user_tools_of(task: Task, domain: Domain) -> list | None:
    """Returns the user's tools, None if it has none. Newer versions of tau2-bench name them for each task."""
    named = getattr(task, "user_tools", None)
    if domain.user_kit is None or named is None:
        return domain.user_kit
    return [tool for tool in domain.user_kit if tool.name in named] or None
