"""Taskset, harness and env of a synthesized environment: each answer of the model is a step of its episode.

The harness is part of it: user and tools answer together, so that no other harness could play their side.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from openai import APIStatusError, AsyncOpenAI

import verifiers.v1 as vf
from verifiers.v1.harnesses.utils.compaction import is_context_overflow

from .process import Program

program = Program(Path(__file__).with_name("environment.js"))


async def request(method: str, **params: Any) -> dict[str, Any]:
    return await asyncio.to_thread(program.request, method, **params)


class Played(vf.State):
    evaluation: dict[str, Any] | None = None


class SynthesizedTask(vf.Task[vf.TaskData, Played]):
    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        if trace.state.evaluation is None:
            raise ValueError("the episode was cut off before it was evaluated")
        return trace.state.evaluation["reward"]

    @vf.metric
    async def breakdown(self, trace: vf.Trace) -> dict[str, float]:
        return (trace.state.evaluation or {}).get("breakdown", {})


class SynthesizedConfig(vf.TasksetConfig):
    split: Literal["train", "test"] = "train"


class SynthesizedTaskset(vf.Taskset[SynthesizedTask, SynthesizedConfig]):
    def load(self) -> Iterator[SynthesizedTask]:
        for task in program.request("tasks", split=self.config.split)["tasks"]:
            started = program.request("reset", task={"id": task["id"], "seed": 0})
            program.request("close", episode=started["episode"])
            [system, *said] = started["messages"]
            data = vf.TaskData(id=task["id"], system_prompt=system["content"], prompt=said)
            yield SynthesizedTask(data, self.config.task)


class SynthesizedHarness(vf.Harness[vf.HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data) -> vf.ProgramResult:
        started = await request("reset", task={"id": data.id, "seed": 0})
        try:
            async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
                reason = await self.play(client, ctx.model, trace, data, started)
            trace.state.evaluation = await request("evaluate", episode=started["episode"], reason=reason)
        finally:
            await request("close", episode=started["episode"])
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def play(self, client: AsyncOpenAI, model: str, trace: vf.Trace, data: vf.TaskData, started: dict) -> str:
        """The reason for which the episode ended."""
        system, said = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}, *({"role": m.role, "content": m.content} for m in said)]
        tools = [
            {"type": "function", "function": {name: tool[name] for name in ("name", "description", "parameters")}}
            for tool in started["tools"]
        ]
        for _ in range(started["maxSteps"]):
            try:
                answer = await client.chat.completions.create(model=model, messages=messages, tools=tools)
            except APIStatusError as error:
                if is_context_overflow(error):
                    return "context_length"
                # A limit of verifiers' own, such as the agent's max_turns.
                if trace.stop_condition is not None:
                    return "max_steps"
                raise
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            try:
                calls = [called(call) for call in message.tool_calls or []]
            except ValueError as error:
                messages += [wire_result(call.id, f"error : {error}") for call in message.tool_calls]
                continue
            sent = {"role": "assistant", "content": message.content or "", **({"toolCalls": calls} if calls else {})}
            step = await request("step", episode=started["episode"], message=sent)
            messages += [
                wire_result(m["toolCallId"], m["content"])
                if m["role"] == "tool"
                else {"role": m["role"], "content": m["content"]}
                for m in step["messages"]
            ]
            if step["done"]:
                return step.get("stopReason", "agent_stop")
        return "max_steps"


def called(call: Any) -> dict[str, Any]:
    arguments = json.loads(call.function.arguments or "{}", parse_constant=no_json)
    if not isinstance(arguments, dict):
        raise ValueError("arguments must be a JSON object")
    return {"id": call.id, "name": call.function.name, "arguments": arguments}


def no_json(name: str) -> None:
    """Python reads NaN and Infinity, which no JSON has."""
    raise ValueError(f"{name} is no JSON")


def wire_result(call: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


class SynthesizedEnvConfig(vf.SingleAgentEnvConfig):
    # The harness runs in verifiers' own process: there is nothing to put into a container.
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class SynthesizedEnv(vf.Env[SynthesizedEnvConfig]):
    async def run(self, task, agents) -> None:
        await agents.agent.run(task)
