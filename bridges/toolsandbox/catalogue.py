"""Scenarios as tasks: ids, splits, rows of the report's tables.

Invariant: no scenario is in both splits; with `held_out`, neither is a variant of it or one like it.
"""

import hashlib
import re
from typing import Any

from tool_sandbox.common.execution_context import DatabaseNamespace, RoleType, ScenarioCategories
from tool_sandbox.common.scenario import Scenario
from tool_sandbox.common.tool_discovery import ToolBackend, get_all_tools
from tool_sandbox.scenarios import named_scenarios

# The suffixes of the names of variants of a base scenario.
VARIANT = re.compile(r"_(3_distraction_tools|10_distraction_tools|all_tools)(_\w+_scrambled)?$")
# Their tools ask a web service, with a key of the user's.
WEB_MODULE = "tool_sandbox.tools.rapid_api_search_tools"


class Catalogue:
    def __init__(self, held_out: float) -> None:
        self.scenarios: dict[str, Scenario] = named_scenarios(preferred_tool_backend=ToolBackend.DEFAULT)
        self.held_out = held_out_families(self.scenarios, held_out)
        tools = get_all_tools(ToolBackend.DEFAULT)
        self._web_tools = {name for name, tool in tools.items() if tool.__module__ == WEB_MODULE}

    def policy(self) -> str:
        """The agent's rules: one text for all scenarios."""
        [text] = {agent_rules(scenario) for scenario in self.scenarios.values()}
        return text

    def wording(self) -> str:
        """Describes the splits for readers of a result."""
        if self.held_out:
            return f"test: base scenarios of the held-out families ({', '.join(sorted(self.held_out))})"
        return "test: the base scenarios; train: their variants with other tools, so it shares their requests"

    def tasks(self, split: str) -> list[dict[str, Any]]:
        names = [name for name in self.scenarios if self.split(name) == split]
        return [{"id": name, "split": split, "groups": self.groups(name)} for name in names]

    def split(self, name: str) -> str | None:
        """`test`: the base scenarios, as published, or those held out, whose variants are in neither split."""
        if not self.held_out:
            return "test" if is_base(name) else "train"
        if family(name) not in self.held_out:
            return "train"
        return "test" if is_base(name) else None

    def groups(self, name: str) -> list[str]:
        """ToolSandbox's categories, counted as it counts them: a scrambled variant is not one with three more tools."""
        categories = [str(category).lower() for category in self.scenarios[name].categories]
        if any(category.endswith("_scrambled") for category in categories):
            categories.remove("three_distraction_tools")
        return [*categories, "needs_web_key" if self.needs_web_key(name) else "needs_no_web_key"]

    def needs_web_key(self, name: str) -> bool:
        """Returns True if only a web key makes it solvable. A scenario that lacks information is never solvable."""
        scenario = self.scenarios[VARIANT.sub("", name)]
        if ScenarioCategories.INSUFFICIENT_INFORMATION in scenario.categories:
            return False
        return not self._web_tools.isdisjoint(scenario.starting_context.tool_allow_list)


def agent_rules(scenario: Scenario) -> str:
    messages = scenario.starting_context.get_database(DatabaseNamespace.SANDBOX, get_all_history_snapshots=True)
    return "\n".join(
        message["content"]
        for message in messages.to_dicts()
        if (message["sender"], message["recipient"]) == (RoleType.SYSTEM, RoleType.AGENT)
    )


def is_base(name: str) -> bool:
    return not VARIANT.search(name)


def family(name: str) -> str:
    """Scenarios whose names begin with the same two words ask for the same thing: `remove_contact_by_phone_alt`, ..."""
    return "_".join(name.split("_")[:2])


def held_out_families(names: Any, fraction: float) -> frozenset[str]:
    """Returns this fraction of all families, at least one and not all. The choice depends on their names alone."""
    if fraction == 0:
        return frozenset()
    families = sorted({family(name) for name in names}, key=lambda name: hashlib.sha256(name.encode()).digest())
    return frozenset(families[: min(max(round(fraction * len(families)), 1), len(families) - 1)])
