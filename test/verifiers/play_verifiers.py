"""Plays the first tasks of a taskset by verifiers' own loader and loop: play_verifiers.py TASKSET URL COUNT."""

import asyncio
import itertools
import json
import sys

import verifiers.v1 as vf

taskset, url, count = sys.argv[1:]


async def main() -> list[vf.Episode]:
    env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": taskset}}))
    client = vf.EvalClientConfig(base_url=url, api_key_var="KEY")
    sampling = vf.SamplingConfig(temperature=1, max_tokens=32)
    model = vf.ModelContext(client=client, model="base", sampling=sampling)
    async with env.serving():
        tasks = itertools.islice(env.taskset, int(count))
        return await asyncio.gather(*(env.run_episode(task, model) for task in tasks))


def told(episode: vf.Episode) -> dict:
    [trace] = episode.traces
    return {
        "task": episode.task.data.id,
        "ok": episode.ok,
        "rewards": {
            name: reward and reward.value for name, reward in trace.rewards.items()
        },
        "said": [
            m.model_dump() for m in trace.branches[-1].messages if m.role == "assistant"
        ]
        if trace.nodes
        else [],
        "errors": [error.message for error in (*episode.errors, *trace.errors)],
    }


print(json.dumps([told(episode) for episode in asyncio.run(main())]))
