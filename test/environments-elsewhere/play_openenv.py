"""Plays an exported environment with its own client, all episodes at once: {"url", "package", "episodes": [...]} on stdin.

An episode is `reset` (arguments; none to leave it out) and `actions` ([tool, arguments] each); what came of it goes to stdout.
"""

import asyncio
import importlib
import json
import sys


async def play(package, url, episode):
    heard = {"steps": []}
    async with package.SynthesizedEnv(base_url=url) as env:
        try:
            if episode.get("reset") is not None:
                begun = await env.reset(**episode["reset"])
                heard["prompt"] = begun.metadata["prompt"]
                heard["tools"] = [tool.name for tool in await env.list_tools()]
            for tool, arguments in episode["actions"]:
                result = await env.step(
                    package.CallToolAction(tool_name=tool, arguments=arguments)
                )
                error = result.observation.error
                said = error.message if error else result.observation.result
                heard["steps"].append(
                    {"said": said, "reward": result.reward, "done": result.done}
                )
        except (RuntimeError, ConnectionError) as error:
            heard["error"] = str(error)
    return heard


async def main():
    asked = json.load(sys.stdin)
    package = importlib.import_module(asked["package"])
    print(
        json.dumps(
            await asyncio.gather(
                *(play(package, asked["url"], one) for one in asked["episodes"])
            )
        )
    )


asyncio.run(main())
