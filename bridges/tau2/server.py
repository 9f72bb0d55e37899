"""The protocol's methods over tau2-bench. Invariant: all state is in `episodes`; the domains are never changed."""

import hashlib
import json
from typing import Any

from tau2.config import DEFAULT_MAX_STEPS
from tau2.data_model.tasks import Task

from ..rpc import BadParams, Episodes, Methods
from .domain import Domain
from .episode import Episode
from .evaluation import evaluate
from .library import PACKAGE

# Tasks of the package that release 1.0.1 has corrected. Telecom's tasks are the same in both.
OUTDATED = {
    "airline": "27 of 50 airline tasks (13 of the 20 in `test`)",
    "retail": "27 of 114 retail tasks (6 of the 40 in `test`) and judges retail by assertions in natural language, too",
}


def methods_of(names: list[str], version: str) -> Methods:
    domains = {name: Domain(name) for name in names}
    tools: dict[str, dict[str, Any]] = {}
    for domain in domains.values():
        for tool in domain.tools:
            tools.setdefault(tool["name"], tool)
    episodes: Episodes[Episode] = Episodes()

    def describe(_: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": "tau2-bench",
            "version": f"{version}, tasks {digest_of(domains)}: {', '.join(domains)}",
            "notes": notes_of(version, names),
            "policy": policy_of(list(domains.values())),
            "tools": list(tools.values()),
            "maxSteps": DEFAULT_MAX_STEPS,
            "hasReference": True,
        }

    def tasks(params: dict[str, Any]) -> dict[str, Any]:
        split = params["split"]
        return {
            "tasks": [
                {"id": f"{domain.name}/{task}", "split": split, "groups": [domain.name]}
                for domain in domains.values()
                for task in domain.splits[split]
            ]
        }

    def reset(params: dict[str, Any]) -> dict[str, Any]:
        domain, task = find(domains, params["task"]["id"])
        episode = Episode(domain, task)
        return {"episode": episodes.add(episode), **episode.start()}

    return {
        "describe": describe,
        "tasks": tasks,
        "reset": reset,
        "step": lambda params: episodes.of(params).step(params["message"]),
        "evaluate": lambda params: evaluate(episodes.of(params), params["reason"], params.get("judgements") or []),
        "close": episodes.close,
    }


def digest_of(domains: dict[str, Domain]) -> str:
    """Returns the digest of all tasks and solutions by split, without fields that tau2 generates (message times)."""
    tasks = {
        domain.name: {
            split: [task.model_dump(mode="json", exclude_unset=True) for task in of.values()]
            for split, of in domain.splits.items()
        }
        for domain in domains.values()
    }
    return hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest()[:12]


def notes_of(version: str, names: list[str]) -> list[str]:
    outdated = [OUTDATED[name] for name in names if name in OUTDATED] if version.startswith(PACKAGE) else []
    if not outdated:
        return []
    return [
        f"the tasks are those of June 2025, as packaged; release 1.0.1 corrected {', '.join(outdated)}; "
        "name a clone of it in target.checkout"
    ]


def policy_of(domains: list[Domain]) -> str:
    """One domain's policy as it is; several under headings."""
    if len(domains) == 1:
        return domains[0].policy
    return "\n\n".join(f"# Domain {domain.name}\n\n{domain.policy}" for domain in domains)


def find(domains: dict[str, Domain], task_id: str) -> tuple[Domain, Task]:
    name, _, task = task_id.partition("/")
    if name in domains:
        for tasks in domains[name].splits.values():
            if task in tasks:
                return domains[name], tasks[task]
    raise BadParams(f"params.task.id: no task {task_id} in {', '.join(domains)}; an id is domain/task")
