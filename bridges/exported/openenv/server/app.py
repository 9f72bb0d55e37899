"""The OpenEnv server of a synthesized environment: a thin adapter to the program that plays it.

Invariant: an episode's reward comes once, with `done`; before that it is 0. What the program can't answer is an error
of the server's, and never a reward; whatever the agent does wrong is an observation, as the environment words it.
"""

import argparse
import os
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

try:
    from ..process import Program
except ImportError:  # run in the package's folder, as `server.app`
    from process import Program

NAME = "synthesized_environment"
PROGRAM = Program(Path(__file__).parents[1] / "environment.js")
# Seeds that the adapters were neither calibrated nor validated on.
TRAINING_SEEDS = range(10_000, 1_000_000)
SAY = Tool(
    name="say_to_user",
    description="Says something to the user, who answers.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


class SynthesizedEnvironment(Environment[Action, Observation, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._episode: str | None = None
        self._state = State()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        split: str | None = None,
        index: int | None = None,
        **_: Any,
    ) -> Observation:
        """Begins `index` of `split`, or the task of a seed; of a training seed where nothing is named."""
        self.close()
        if split is not None and index is not None:
            task = self.get_task(split, index)["id"]
        else:
            task = f"seed-{random.choice(TRAINING_SEEDS) if seed is None else seed}"
        begun = PROGRAM.request("reset", task={"id": task, "seed": 0})
        self._episode = begun["episode"]
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0, task=task)
        metadata = {"task": task, "prompt": begun["messages"], "max_steps": begun["maxSteps"]}
        return Observation(done=False, reward=None, metadata=metadata)

    def step(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        """One call is one message of the agent's; `say_to_user` is one without a call."""
        if isinstance(action, ListToolsAction):
            tools = PROGRAM.request("describe")["tools"]
            offered = (Tool(name=t["name"], description=t["description"], input_schema=t["parameters"]) for t in tools)
            return ListToolsObservation(tools=[*offered, SAY])
        if not isinstance(action, CallToolAction):
            raise TypeError(f"{type(action).__name__}: the actions are list_tools and call_tool")
        if self._episode is None:
            raise RuntimeError("no episode is open: call reset() first")
        name, arguments = action.tool_name, action.arguments
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if name != SAY.name:
            message["toolCalls"] = [{"id": f"c{self._state.step_count}", "name": name, "arguments": arguments}]
        elif isinstance(arguments.get("text"), str):
            message["content"] = arguments["text"]
        else:
            error = ToolError(error_type=ToolErrorType.INVALID_ARGS, message="text is needed, as a string")
            return CallToolObservation(tool_name=name, error=error, reward=0.0)
        said = PROGRAM.request("step", episode=self._episode, message=message)
        self._state.step_count += 1
        metadata, reward = {"messages": said["messages"]}, 0.0
        if said["done"]:
            reason = said.get("stopReason", "user_stop")
            evaluation = PROGRAM.request("evaluate", episode=self._episode, reason=reason)
            metadata, reward = {**metadata, "breakdown": evaluation["breakdown"]}, evaluation["reward"]
            self.close()
        result = "\n".join(one["content"] for one in said["messages"])
        return CallToolObservation(tool_name=name, result=result, done=said["done"], reward=reward, metadata=metadata)

    @property
    def state(self) -> State:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        described = PROGRAM.request("describe")
        return EnvironmentMetadata(name=NAME, description=described["policy"], version=described["version"])

    def close(self) -> None:
        if self._episode is not None:
            episode, self._episode = self._episode, None
            PROGRAM.request("close", episode=episode)

    def list_splits(self) -> list[str]:
        return ["train", "test"]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return PROGRAM.request("tasks", split=split)["tasks"]

    def num_tasks(self, split: str) -> int:
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        return self.list_tasks(split)[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        return self.list_tasks(split)[start:stop]


app = create_app(
    SynthesizedEnvironment,
    CallToolAction,
    CallToolObservation,
    env_name=NAME,
    max_concurrent_envs=int(os.environ.get("MAX_CONCURRENT_ENVS", "64")),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    uvicorn.run(app, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
