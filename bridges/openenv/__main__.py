"""`python -m bridges.openenv OPTIONS`: an environment of OpenEnv as one of the protocol; OPTIONS are target's, as JSON.

Invariants: an episode is one session of the server's and ends with its connection; what the server can't answer is an
error, and never a reward.
"""

import json
import sys
from typing import Any

from ..rpc import BadParams, Episodes, Methods, protocol_streams, serve

# Changes whenever tasks, tools, observations or rewards do, for the same server and options.
VERSION = 1


def main() -> None:
    options = json.loads(sys.argv[1])
    with protocol_streams() as (requests, answers):
        # Loads slowly, and prints.
        from .server import Server

        serve(environment(Server(options), options), requests, answers, at_once=64)


def environment(server: Any, options: dict[str, Any]) -> Methods:
    from .episode import Episode

    episodes: Episodes[Episode] = Episodes()

    def describe(_: dict[str, Any]) -> dict[str, Any]:
        told = server.metadata
        changing = {name: options.get(name) for name in ("prompt", "words", "reward", "rewardRange", "reset")}
        return {
            "name": told["name"],
            "version": f"{told.get('version')}; bridge {VERSION}; {json.dumps(changing, sort_keys=True)}",
            "policy": server.prompt,
            "tools": server.tools,
            "maxSteps": options["maxSteps"],
            "hasReference": False,
        }

    def tasks(params: dict[str, Any]) -> dict[str, Any]:
        split = params["split"]
        return {"tasks": [{"id": f"{split}-{n}", "split": split} for n in range(len(server.tasks[split]))]}

    def reset(params: dict[str, Any]) -> dict[str, Any]:
        task = params["task"]["id"]
        split, _, number = task.partition("-")
        known = server.tasks.get(split, [])
        if not number.isdecimal() or int(number) >= len(known):
            raise BadParams(f"params.task.id: there is no task {task}; `tasks` lists them")
        episode = Episode(server, options)
        start = episode.begin(known[int(number)])
        return {"episode": episodes.add(episode), **start}

    def close(params: dict[str, Any]) -> dict[str, Any]:
        episodes.of(params).close()
        return episodes.close(params)

    return {
        "describe": describe,
        "tasks": tasks,
        "reset": reset,
        "step": lambda params: episodes.of(params).step(params["message"]),
        "evaluate": lambda params: episodes.of(params).evaluate(),
        "close": close,
    }


if __name__ == "__main__":
    main()
