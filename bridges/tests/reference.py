"""python -m bridges.tests.reference DOMAIN...: prints each task's solution as tau2-bench holds it."""

import json
import os
import sys

from bridges.rpc import protocol_streams
from bridges.tau2.library import load


def main() -> None:
    with protocol_streams() as (_, answers):
        load(os.environ.get("TAU2_CHECKOUT"))
        from tau2.registry import registry

        solutions = {}
        for domain in sys.argv[1:]:
            environment = registry.get_env_constructor(domain)()
            for task in registry.get_tasks_loader(domain)("base"):
                criteria = task.evaluation_criteria
                actions = [
                    {
                        "requestor": action.requestor,
                        "name": action.name,
                        "arguments": action.arguments,
                        "writes": action.requestor == "assistant"
                        and environment.tools.tool_type(action.name).value == "write",
                    }
                    for action in criteria.actions or []
                ]
                solutions[f"{domain}/{task.id}"] = {
                    "actions": actions,
                    "tell": criteria.communicate_info or [],
                    "assertions": criteria.nl_assertions or [],
                }
        json.dump(solutions, answers)


main()
