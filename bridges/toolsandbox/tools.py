"""The agent's and the user's tools as ToolSandbox describes them.

Invariant: names, texts and schemas are what its own roles send for the current context, scrambled where it says so.
"""

from typing import Any

from tool_sandbox.common.execution_context import ExecutionContext, RoleType, ScenarioCategories, new_context
from tool_sandbox.common.tool_conversion import convert_to_openai_tools
from tool_sandbox.roles.base_role import BaseRole

# The first word of the tools that change something; all others only read.
WRITES = ("add", "end", "modify", "remove", "send", "set")


class AgentRole(BaseRole):
    role_type = RoleType.AGENT


class UserRole(BaseRole):
    role_type = RoleType.USER


def offered(role: type[BaseRole]) -> list[dict[str, Any]]:
    tools = role.get_available_tools()
    return [
        {**described["function"], "annotations": {"readOnlyHint": tool.__name__.split("_")[0] not in WRITES}}
        for tool, described in zip(tools.values(), convert_to_openai_tools(tools), strict=True)
    ]


def all_agent_tools() -> list[dict[str, Any]]:
    """Returns the schemas of all tools under their own names, and under their scrambled names."""
    listed = []
    for augmentations in ([], [ScenarioCategories.TOOL_NAME_SCRAMBLED]):
        with new_context(ExecutionContext(tool_augmentation_list=augmentations)):
            listed += offered(AgentRole)
    return listed
