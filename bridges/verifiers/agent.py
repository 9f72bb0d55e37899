"""One rollout of an environment of verifiers, by verifiers' own loop, as the program of an agent (docs/agents.md).

The task on stdin holds `index`, its place in the taskset, and `env`, verifiers' config of the environment. All seats
ask OPENAI_BASE_URL. A rollout that verifiers calls failed ends the program with exit code 1: it has no reward.
"""

import asyncio
import itertools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.configs.agent import agent_config_fields


def environment_of(config: dict[str, Any], max_turns: int) -> vf.Env:
    """Loads the environment. By default, seats run in a plain process, by a harness without access to this host."""
    taskset = config["taskset"]["id"]
    seats = agent_config_fields(vf.env_config_type(taskset, config.get("id", ""))())
    harness = vf.default_harness_id(taskset)
    for name in seats:
        seat = config.setdefault(name, {})
        seat.setdefault("harness", {"id": "null" if harness == "bash" else harness})
        seat.setdefault("runtime", {"type": "subprocess"})
        seat.setdefault("max_turns", max_turns)
    return vf.load_environment(vf.resolve_env_config(config))


async def played(env: vf.Env, index: int) -> vf.Episode:
    task = next(itertools.islice(env.taskset, index, None), None)
    if task is None:
        raise SystemExit(f"the taskset has no task {index}: set target.trainTasks and target.testTasks lower")
    client = vf.EvalClientConfig(base_url=os.environ["OPENAI_BASE_URL"], api_key_var="OPENAI_API_KEY")
    model = vf.ModelContext(client=client, model=os.environ["OPENAI_MODEL"], sampling=vf.SamplingConfig())
    async with env.serving():
        return await env.run_episode(task, model)


def told(episode: vf.Episode, low: float, high: float) -> dict[str, Any]:
    """Returns the trained seats' mean reward, scaled from [low, high] to [0, 1]. Exits if a rollout has no reward."""
    traces = [trace for trace in episode.traces if trace.agent.trainable]
    rewards = [trace.reward for trace in traces if trace.rewards and None not in trace.rewards.values()]
    if not episode.ok or not traces or len(rewards) < len(traces):
        errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        raise SystemExit("\n".join(f"{e.type}: {e.message}" for e in errors) or "verifiers has scored nothing")
    reward = sum(rewards) / len(rewards)
    share = (reward - low) / (high - low)
    # Rounding of a mean may lead outside by as much as the product allows (src/domain/environment.ts).
    if not -1e-6 <= share <= 1 + 1e-6:
        raise SystemExit(f"the reward is {reward}: set target.rewards to the least and the most that there are")
    metrics = {name: value for trace in traces for name, value in trace.metrics.items() if value is not None}
    return {"reward": share, "breakdown": metrics}


def main() -> None:
    task = json.load(sys.stdin)
    random.seed(int(os.environ["CAMPAIGN_SEED"]))
    # Programs that verifiers starts find the programs that are installed beside it, such as uv.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    episode = asyncio.run(played(environment_of(task["env"], task["maxSteps"]), task["index"]))
    print(json.dumps(told(episode, *task["rewards"])))


main()
