"""`python -m bridges.toolsandbox FOLDER [--held-out FRACTION]`: ToolSandbox as an environment of the protocol.

Invariant: a wrong folder or fraction is reported in one line, before anything is loaded.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ..rpc import BadParams, Episodes, Methods, protocol_streams, serve
from . import library

# Increase it whenever tasks, tools, observations or rewards change for the same folder.
VERSION = 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bridges.toolsandbox", description=__doc__)
    parser.add_argument("folder", type=Path, help="a checkout of ToolSandbox")
    parser.add_argument(
        "--held-out", type=float, default=0.0, help="fraction of the scenario families that only test has"
    )
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not (folder / "tool_sandbox" / "scenarios").is_dir():
        sys.exit(f"target.folder: {folder} has no tool_sandbox/scenarios; name a checkout of ToolSandbox")
    if not 0 <= options.held_out < 1:
        sys.exit(f"target.heldOut: {options.held_out} is not in [0, 1); give a fraction")
    with protocol_streams() as (requests, answers):
        serve(environment(folder, options.held_out), requests, answers)


def environment(folder: Path, held_out: float) -> Methods:
    clock = library.load(folder)
    # These modules import tool_sandbox, which library.load has made importable.
    from .catalogue import Catalogue
    from .episode import Episode
    from .tools import all_agent_tools

    catalogue = Catalogue(held_out)
    episodes: Episodes[Episode] = Episodes()

    def describe(_: dict[str, Any]) -> dict[str, Any]:
        web = "with a web key" if "RAPID_API_KEY" in os.environ else "without a web key"
        return {
            "name": "toolsandbox",
            "version": f"ToolSandbox {library.digest(folder)}; bridge {VERSION}; {web}; {catalogue.wording()}",
            "policy": catalogue.policy(),
            "tools": all_agent_tools(),
            "maxSteps": max(scenario.max_messages for scenario in catalogue.scenarios.values()),
            "hasReference": False,
        }

    def tasks(params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": catalogue.tasks(params["split"])}

    def reset(params: dict[str, Any]) -> dict[str, Any]:
        task, seed = params["task"]["id"], params["task"]["seed"]
        if task not in catalogue.scenarios:
            raise BadParams(f"params.task.id: ToolSandbox has no scenario {task}; `tasks` lists them")
        episode = Episode(catalogue.scenarios[task], clock, f"{task} {seed}")
        return {"episode": episodes.add(episode), **episode.start()}

    return {
        "describe": describe,
        "tasks": tasks,
        "reset": reset,
        "step": lambda params: episodes.of(params).step(params["message"]),
        "evaluate": lambda params: episodes.of(params).evaluate(params["reason"]),
        "close": episodes.close,
    }


if __name__ == "__main__":
    main()
