"""One domain of tau2-bench, loaded once. Invariant: an environment from `fresh` equals one that tau2 constructs."""

import pickle
from typing import Any

from tau2.data_model.tasks import Task
from tau2.environment.environment import Environment
from tau2.environment.toolkit import ToolType
from tau2.registry import registry

SPLITS = ("train", "test")


class Domain:
    def __init__(self, name: str):
        if name not in registry.get_domains():
            raise ValueError(f"domains: {name} is none of tau2-bench's: {', '.join(registry.get_domains())}")
        environment = registry.get_env_constructor(name)()
        self.name = name
        self.policy = environment.get_policy()
        self.tools = [schema_of(tool, environment.tools) for tool in environment.get_tools()]
        self.user_kit = None if environment.user_tools is None else environment.get_user_tools()
        self.splits = splits_of(name)
        self.write_tools = {tool["name"] for tool in self.tools if not tool["annotations"]["readOnlyHint"]}
        # A copy costs half of a construction, which parses and checks the whole database. The evaluator asks for
        # two environments a task, through the registry: it gets copies too.
        self._pristine = pickle.dumps(environment, pickle.HIGHEST_PROTOCOL)
        registry._domains[name] = self.fresh

    def fresh(self, solo_mode: bool = False) -> Environment:
        if solo_mode:
            raise ValueError("an agent without a user is not supported")
        return pickle.loads(self._pristine)


def schema_of(tool: Any, toolkit: Any) -> dict[str, Any]:
    """The schema as tau2 gives it to a model, in the protocol's form."""
    read_only = toolkit.tool_type(tool.name) != ToolType.WRITE
    return {**tool.openai_schema["function"], "annotations": {"readOnlyHint": read_only}}


def splits_of(name: str) -> dict[str, dict[str, Task]]:
    """The tasks of each split by id. A domain that ships no train and test (mock) has every second task in each."""
    tasks = {task.id: task for task in registry.get_tasks_loader(name)(None)}
    load_splits = registry.get_task_splits_loader(name)
    shipped = (load_splits() if load_splits is not None else None) or {}
    if not all(shipped.get(split) for split in SPLITS):
        shipped = {split: list(tasks)[n::2] for n, split in enumerate(SPLITS)}
    return {split: {task: tasks[task] for task in shipped[split]} for split in SPLITS}
