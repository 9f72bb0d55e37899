"""One episode: a session of the server's, in which the agent's messages are actions, one after the other."""

import json
import math
from typing import Any

from .server import ACT, Server

Answer = dict[str, Any]


class Unrewarded(Exception):
    """The environment told no reward, or what is none; nothing that the agent did."""


class Episode:
    def __init__(self, server: Server, options: dict[str, Any]) -> None:
        self._server, self._options = server, options
        self._session = server.session()
        self._rewards: list[float] = []
        self._done = False

    def begin(self, task: dict[str, Any]) -> Answer:
        """`task`: arguments of the server's reset. A prompt in its metadata is the conversation's beginning."""
        try:
            begun = self._session.reset(**self._options["reset"], **task)
        except BaseException:
            self.close()
            raise
        self._session.async_client.begun = True
        prompt = (begun.observation.get("metadata") or {}).get("prompt") or []
        messages = [{"role": one["role"], "content": one["content"]} for one in prompt]
        messages = messages or [{"role": "user", "content": text(begun.observation)}]
        if messages[0]["role"] != "system":
            messages = [{"role": "system", "content": self._server.prompt}, *messages]
        return {"messages": messages, "tools": self._server.tools, "maxSteps": self._options["maxSteps"]}

    def step(self, message: Answer) -> Answer:
        answers: list[Answer] = []
        words = self._server.words
        for call in message.get("toolCalls") or []:
            content = self._act(call["name"], call["arguments"])
            answers.append({"role": "tool", "toolCallId": call["id"], "content": content})
            if self._done:
                break
        if not answers:
            if words is None:
                return {"messages": [], "done": True, "stopReason": "agent_stop"}
            name, field = words
            answers.append({"role": "user", "content": self._act(name, {field: message["content"]})})
        return {"messages": answers, "done": self._done, **({"stopReason": "user_stop"} if self._done else {})}

    def evaluate(self) -> Answer:
        """Of an episode that the agent left before a reward was told, the least."""
        low, high = self._options["rewardRange"]
        if self._done and not self._rewards:
            raise Unrewarded("step: the episode is over, and no observation told a reward")
        told = self._rewards or [low]
        value = sum(told) if self._options["reward"] == "sum" else told[-1]
        if not math.isfinite(value):
            raise Unrewarded(f"step: reward is {value}, which is no number")
        reward = min(max((value - low) / (high - low), 0.0), 1.0)
        return {"reward": reward, "breakdown": {"told": value, "steps": len(self._rewards)}}

    def close(self) -> None:
        self._session.close()

    def _act(self, name: str, arguments: Answer) -> str:
        """What the server answers, in words; also to an action that it does not take."""
        if self._server.has_tools:
            action = {"type": "call_tool", "tool_name": name, "arguments": arguments}
        elif name == ACT:
            action = arguments
        else:
            return f"error : unknown tool {name}"
        try:
            result = self._session.step(action)
        except RuntimeError as error:
            # The one error of the server's that is about the action; any other one is its own.
            if "(code: VALIDATION_ERROR)" not in str(error):
                raise
            return "error : the arguments do not fit"
        self._done = bool(result.done)
        if result.reward is not None:
            self._rewards.append(float(result.reward))
        return text(result.observation)


def text(observation: Answer) -> str:
    """One text alone as it is, else JSON. Metadata, which may differ from run to run, only where it is all."""
    if error := observation.get("error"):
        return f"error : {error['message'] if isinstance(error, dict) else error}"
    if "tool_name" in observation:
        told = observation.get("result")
        # As FastMCP answers.
        if isinstance(told, dict) and "data" in told:
            told = told["data"]
    else:
        fields = {name: value for name, value in observation.items() if name != "metadata"}
        said = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
        said = said or observation.get("metadata") or {}
        told = next(iter(said.values())) if len(said) == 1 else said
    return told if isinstance(told, str) and told else json.dumps(told, ensure_ascii=False)
